"""The programming interface of the original: tasks, worlds, events, channels, environment and session.

Start with `task.py`, which task authors import, and `environment.py`, which runs tasks one symbol at a time. User code
finds these modules under their old names, `core.task` and so on: see `original/imports.py`.
"""
