"""Transition tables, their code books, and the histograms of counts that the measures need.

Start at `table.Table`. `transitions` makes a table from inputs and actions, `counts` counts it, and `histograms` holds
the result. `codes` and `images` identify the same image in different tables.
"""
