"""A wrapper as a novelty: fog, in which CartPole's numbers can only be read in coarse steps.

Try it: openfield run gym:CartPole-v1 --agent examples/fog.py:BALANCE --agent random --novelty examples/fog.py:Fog
"""

from typing import Any

import gymnasium
import numpy as np

import openfield as of

STEPS = np.array([0.5, 1.0, 0.1, 1.0], np.float32)
"""How coarse position, speed, angle and turning speed are."""


class Fog(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Rounds what the agent sees."""

    def observation(self, observation: Any) -> Any:
        """Return the observation in coarse steps."""
        return np.round(observation / STEPS) * STEPS


BALANCE = of.policy(lambda seen: int(seen[2] + 0.3 * seen[3] > 0))
