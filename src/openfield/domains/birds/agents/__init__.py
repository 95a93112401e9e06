"""Agents that play birds: three shooters, a detector that wraps any agent, and a person at the keyboard.

Start with `shooters`. Every agent reads the ground truth and aims with `observed_level`; `planner` adds a simulated
copy of the level.
"""

from openfield.domains.birds.agents.passive_detector import PassiveDetector, make_fall_detector, make_passive_detector
from openfield.domains.birds.agents.planner import Planner
from openfield.domains.birds.agents.shooters import NaiveShooter, RandomShooter, Shooter

__all__ = [
    "NaiveShooter",
    "PassiveDetector",
    "Planner",
    "RandomShooter",
    "Shooter",
    "make_fall_detector",
    "make_passive_detector",
]
