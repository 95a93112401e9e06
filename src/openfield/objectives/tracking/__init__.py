"""Objectives while an agent lives: wrap an environment, and ask at any moment what the agent has done so far.

Start at `tracker.Tracker`. `life` counts transitions within a cap of memory, `inputs` turns observations into keys and
codes, and `measured` computes the objectives and logs them during training, `callback` those of stable-baselines3.
"""
