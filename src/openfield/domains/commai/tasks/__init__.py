"""The exercises of the General AI Challenge, and the curricula made of them.

Start with `catalogue.py`, which has every task by its id. `micro.py` is the engine of the micro tasks, `mapping.py` and
`phrases.py` their questions; `mini.py` has the mini tasks. `legacy.py` names the older task sets, which are
in `original/tasks/`.
"""
