"""The pages of the viewer, one module for each kind: it reads the data that the template of the same name shows.

Start with `runs.py`, the list of all runs. `openfield.view.app` says how a page is added.
"""
