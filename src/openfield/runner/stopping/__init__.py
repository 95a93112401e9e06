"""Runs that stop by themselves: the rule that ends them, and the batches between which it is looked at.

`rule` reads what the user asks for, `batches` deals trials into batches and says which cells may be played. Whether a
rule is met is a matter of metrics: `openfield.planning.interim` looks.
"""
