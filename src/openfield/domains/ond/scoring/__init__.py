"""Score open-set results that are on disk, without a server and without a run; `openfield score ond` prints them.

`result_files` scores the protocol's result files: of one test, or of many tests and several agents. `open_set` scores
confidences, and streams made of them. Both take numbers from `openfield.metrics.openset`.
"""
