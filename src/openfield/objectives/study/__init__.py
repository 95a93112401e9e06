"""A study: the objectives of many agents in several environments, and how they correlate.

Start at `study`, which evaluates all tables. `manifest` finds the tables. `report.study` draws the
results.
"""
