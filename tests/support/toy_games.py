"""Two toy games of pictures for studies; importing this module registers them.

If OPENFIELD_GATE names a pipe, the second life of a game waits until it can be read: a study can be killed there.
"""

import os

import gymnasium
import numpy as np
from gymnasium import spaces


class ToyGame(gymnasium.Env):
    """A square on a field of 20 x 24 pixels that four actions move; the right edge pays, and ends the episode."""

    def __init__(self, width=6, wind=0.0):
        self.observation_space, self.action_space = spaces.Box(0, 255, (20, 24), np.uint8), spaces.Discrete(4)
        self.width, self.wind, self.place = width, wind, (0, 0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed == 1 and "OPENFIELD_GATE" in os.environ:
            with open(os.environ["OPENFIELD_GATE"]) as gate:
                gate.read()
        self.place = (0, int(self.np_random.integers(4)))
        return self.draw(), {}

    def step(self, action):
        moves = ((0, 0), (1, 0), (-1, 0), (0, 1))
        x, y = moves[action if self.np_random.random() >= self.wind else int(self.np_random.integers(4))]
        self.place = (min(max(self.place[0] + x, 0), self.width - 1), (self.place[1] + y) % 4)
        over = self.place[0] == self.width - 1
        return self.draw(), float(over), over, False, {}

    def draw(self):
        field = np.zeros((20, 24), np.uint8)
        x, y = self.place
        field[y * 5 : y * 5 + 5, x * 4 : x * 4 + 4] = 250
        return field


gymnasium.register("ToyField-v0", f"{__name__}:ToyGame", max_episode_steps=40)
gymnasium.register("ToyStorm-v0", f"{__name__}:ToyGame", max_episode_steps=40, kwargs={"wind": 0.5})
