"""One agent for several domains: it walks through the maze, and balances the pole.

The campaign examples/campaign.toml plays it in both.

Try it: openfield run examples/maze.py --agent examples/everywhere.py:make
"""

import openfield as of

STEPS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


def make(spec: of.Spec, seed: int) -> of.Agent:
    """Make the agent that plays in a domain."""
    return walk if spec.domain == "maze" else balance


def walk(turn: of.Turn) -> of.Reply:
    """Take the free way that ends nearest to the goal."""
    at, goal, is_open = (turn.observation[key] for key in ("at", "goal", "open"))
    free = [(name, step) for (name, step), way in zip(STEPS.items(), is_open, strict=True) if way]
    left = {name: abs(at[0] + x - goal[0]) + abs(at[1] + y - goal[1]) for name, (x, y) in free}
    return of.Reply(min(left, key=left.__getitem__))


def balance(turn: of.Turn) -> of.Reply:
    """Push the cart to the side to which the pole falls."""
    _, _, angle, turning = turn.observation
    return of.Reply(int(angle + 0.3 * turning > 0))
