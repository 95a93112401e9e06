"""Agents of the Doom domains.

`reference` plays well and never learns; start there, because the others build on it. `watchful` also detects novelties,
and `learner` adapts to them.
"""
