"""Detectors of unknown samples, compared on the same samples: what `openfield score` computes.

Start with `benchmark`: it scores detectors on an in-distribution set and sets of unknown samples. `samples` reads the
sets in parts, `score_files` reads score files of others, `catalogue` has the detectors by name with what each needs,
and `resampling` compares them by a paired bootstrap. The measures are in `openfield.metrics.openset.measures`.
"""
