"""One file per command, named like it; `cli/app.py` lists them. Imports of the package wait until a command runs."""
