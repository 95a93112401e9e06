"""An environment of one's own: five beds of a garden, of which one can be watered each day.

Try it: openfield run gym:examples/garden.py:Garden --agent examples/garden.py:DRIEST --agent random --novelty 'sun*=2'
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import openfield as of

BEDS, DAYS = 5, 60
DRY, WET = np.array([196, 154, 108]), np.array([46, 82, 54])


class Garden(gymnasium.Env[Any, Any]):
    """Water one bed a day. The sun dries all of them, and the garden is lost when one is dry."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    action_space = spaces.Discrete(BEDS)
    observation_space = spaces.Box(0.0, 1.0, (BEDS,), np.float64)
    sun = 0.05
    """How much a bed loses on a usual day."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start with beds that were watered some days ago."""
        super().reset(seed=seed)
        self.water, self.day = self.np_random.uniform(0.5, 1.0, BEDS), 0
        return self.water.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Add water to a bed, and let the sun shine."""
        self.water[action] = min(1.0, self.water[action] + 0.4)
        self.water = np.clip(self.water - self.sun * self.np_random.uniform(0.5, 1.5, BEDS), 0.0, 1.0)
        self.day += 1
        return self.water.copy(), 1.0, bool((self.water == 0.0).any()), self.day == DAYS, {}

    def render(self) -> Any:
        """Draw each bed in a colour between dry and wet."""
        colours = DRY + (WET - DRY) * self.water[:, np.newaxis]
        picture = np.full((60, 50 * BEDS + 10, 3), 240, np.uint8)
        for number, colour in enumerate(colours):
            picture[10:50, 50 * number + 10 : 50 * number + 50] = colour
        return picture


DRIEST = of.policy(lambda water: int(water.argmin()))
