"""Small Gymnasium environments for tests."""

import gymnasium
import numpy as np
from gymnasium import spaces


class LineEnv(gymnasium.Env):
    """Places in a row: action 1 goes right, 0 left, and the last place ends the episode; the wind may drift."""

    def __init__(self, size=8, drift=False):
        self.observation_space, self.action_space = spaces.Discrete(size), spaces.Discrete(2)
        self.size, self.drift, self.place = size, drift, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        wind = int(self.np_random.integers(-1, 2)) if self.drift else 0
        self.place = min(max(self.place + (1 if action else -1) + wind, 0), self.size - 1)
        over = self.place == self.size - 1
        return self.place, float(over), over, False, {}


class FlickerEnv(gymnasium.Env):
    """Pictures of random blocks, 21 x 34, in this many colours; some come again, and episodes end at random."""

    def __init__(self, colours=3, kind=np.uint8):
        shape = (21, 34, colours) if colours else (21, 34)
        self.observation_space = spaces.Box(0, 255, shape, kind)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.draw(), {}

    def step(self, action):
        return self.draw(), float(action), bool(self.np_random.random() < 0.05), False, {}

    def draw(self):
        random = np.random.default_rng(int(self.np_random.integers(120)))
        return random.integers(0, 256, self.observation_space.shape).astype(self.observation_space.dtype)
