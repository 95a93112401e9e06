"""Play the maze with an agent of your own, which doubts its world when a move surprises it.

Try it: openfield run examples/maze.py --agent examples/my_agent.py:Walker --agent random
"""

import random

import openfield as of

STEPS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


class Walker:
    """An agent that walks towards the goal and reports how much its moves surprise it."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.rng, self.doubt, self.expected = random.Random(seed), 0.0, [0, 0]

    def __call__(self, turn: of.Turn) -> of.Reply:
        at, goal, is_open = (turn.observation[key] for key in ("at", "goal", "open"))
        if not turn.first:
            self.doubt = min(1.0, self.doubt + 0.3) if at != self.expected else max(0.0, self.doubt - 0.05)
        ways = {
            name: [at[0] + x, at[1] + y]
            for name, (x, y), free in zip(STEPS, STEPS.values(), is_open, strict=True)
            if free
        }
        nearest = min(ways, key=lambda name: abs(ways[name][0] - goal[0]) + abs(ways[name][1] - goal[1]))
        move = nearest if self.rng.random() < 0.8 else self.rng.choice(list(ways))
        self.expected = ways[move]
        return of.Reply(move, of.Belief(self.doubt))
