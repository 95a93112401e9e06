"""The commands that play and prepare, one file each, named like it; `cli/app.py` lists them.

Imports of the package wait until a command runs.
"""
