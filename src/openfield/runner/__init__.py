"""Run a plan: cells are started, played and resumed, here or in worker processes.

Start with `plan`, which pairs agents with trials, then `run`, whose scheduler starts cells on one of the `executors`.
`player` plays one cell; `deadline` and `processes` end agents that do not answer. `experiment` reads experiment files.
"""
