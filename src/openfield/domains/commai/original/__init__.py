"""Learners, tasks, worlds and configurations that were written for the original, unchanged.

`core/` is its programming interface, `tasks/` its older task sets in our own words. `imports.py` lets user code find
both under the old names (`core.task`, `tasks.competition.navigation`); `configuration.py` loads the classes that a
configuration names, and `hosting.py` runs it in a trial.
"""
