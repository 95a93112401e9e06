"""Measures for samples of known and unknown classes: were they separated, the known classified, the change noticed?

Start with `measures`, today's open-set measures. `compat` has the metrics of the open-world programme as published,
`clusters` the agreement of clusters with classes. All take plain arrays; `cells` reads those from recorded trials and
makes a metric of them. The programme's M1 to M6 are in `metrics/programme.py`.
"""
