"""Agents that come with the domain, and their parts.

Start with `builtin`, the agents `knn`, `msp`, `energy`, `mahalanobis`, `openmax` and `adapting`. They train the
classifier in `detectors`, tell unknown samples by one of the detectors there, and declare a change by one of the
`change_detectors`. `precomputed` answers from result files.
"""
