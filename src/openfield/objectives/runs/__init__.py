"""Objectives of recorded runs: what agents did in training, before the world changed and after.

Start at `evaluate.evaluate_runs`. `recordings` reads the episodes of run files, and `observations` turns observations
in them into numbers that can be counted.
"""
