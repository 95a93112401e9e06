"""Drawings of the pages as SVG.

Start with `charts.py`: curves around the onset, intervals and differences. `stage_charts.py` draws objectives without
reward.
"""
