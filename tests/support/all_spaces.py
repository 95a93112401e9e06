"""An environment whose observations and actions are of every kind of space that Gymnasium has."""

import gymnasium
import numpy as np
from gymnasium import spaces

PARTS = {
    "box": spaces.Box(np.array([-1.0, -np.inf], np.float32), np.array([np.inf, 1.0], np.float32)),
    "bytes": spaces.Box(0, 255, (2, 2), np.uint8),
    "wide": spaces.Box(-np.inf, np.inf, (), np.float64),
    "discrete": spaces.Discrete(3, start=-1),
    "several": spaces.MultiDiscrete([2, 5], start=[1, 0]),
    "binary": spaces.MultiBinary(3),
    "text": spaces.Text(4, min_length=1, charset="ab "),
    "inner": spaces.Dict({"tuple": spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (1,))])}),
    "sequence": spaces.Sequence(spaces.Box(0, 1, (2,))),
    "stacked": spaces.Sequence(spaces.Discrete(3), stack=True),
}


class AllSpaces(gymnasium.Env):
    """Shows a random value of all spaces, and pays for actions that are what the environment takes."""

    force = 1.0

    def __init__(self):
        self.action_space, self.observation_space = spaces.Dict(PARTS), spaces.Dict(PARTS)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(int(self.np_random.integers(1 << 30)))
        return self.observation_space.sample(), {}

    def step(self, action):
        good = self.action_space.contains(action)
        return self.observation_space.sample(), self.force * good, False, False, {}
