"""Suites of environments: data files beside this one, what reads them, and the packages that need help.

Begin with `suite`. Importing `atari` or `crafter` registers their environments.
"""
