"""Play the maze over standard input and output, one JSON message per line. It needs only Python 3.6.

Try it: openfield run examples/maze.py --agent "process:python3 examples/stdio_agent.py"
The agent knows what its moves should do, notices when they do something else, and learns it.
"""

# mypy: ignore-errors
# (it runs on a Python that is older than the type hints of this package)

import base64
import json
import random
import sys

MOVES = {"left": [-1, 0], "right": [1, 0], "up": [0, -1], "down": [0, 1]}


class Walker:
    """An agent that walks towards the goal and learns what its moves do."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.effects = dict(MOVES)
        self.surprise = 0.0
        self.was, self.tried = None, None

    def answer(self, turn):
        """Return the reply to a turn, as a message."""
        at, goal = turn["observation"]["at"], turn["observation"]["goal"]
        if not turn["first"]:
            self.learn(at)
        self.was, self.tried = at, self.choose(at, goal, turn["observation"]["open"])
        return {"type": "reply", "action": self.tried, "belief": {"novel": self.surprise}}

    def learn(self, at):
        """Compare where the agent is with where it wanted to be."""
        went = [at[0] - self.was[0], at[1] - self.was[1]]
        if went != [0, 0] and went != self.effects[self.tried]:
            self.effects[self.tried], self.surprise = went, min(1.0, self.surprise + 0.5)

    def choose(self, at, goal, is_open):
        """Choose the move that leads closest to the goal, and sometimes a random one."""
        free = [step for step, way in zip(MOVES.values(), is_open) if way]  # noqa: B905 - Python 3.6
        free.sort(key=lambda step: abs(at[0] + step[0] - goal[0]) + abs(at[1] + step[1] - goal[1]))
        wanted = free[0] if self.random.random() < 0.8 else self.random.choice(free)
        known = [name for name, effect in self.effects.items() if effect == wanted]
        return known[0] if known else self.random.choice(sorted(MOVES))

    def save(self):
        """Return everything the agent knows, as text."""
        return json.dumps([self.random.getstate(), self.effects, self.surprise, self.was, self.tried])

    def load(self, text):
        """Restore what was saved."""
        (version, numbers, gauss), self.effects, self.surprise, self.was, self.tried = json.loads(text)
        self.random.setstate((version, tuple(numbers), gauss))


def main():
    """Send `hello`, then answer every message until `bye` arrives."""
    say({"type": "hello", "protocol": 1, "name": "walker", "saves": True})
    walker = None
    for line in sys.stdin:
        message = json.loads(line)
        kind = message["type"]
        if kind == "welcome":
            walker = Walker(message["seed"])
        elif kind == "turn" and message["ask"] == "act":
            say(walker.answer(message))
        elif kind == "save":
            say({"type": "state", "state": base64.b64encode(walker.save().encode()).decode()})
        elif kind == "load":
            walker.load(base64.b64decode(message["state"]).decode())
            say({"type": "loaded"})
        elif kind == "bye":
            break


def say(message):
    """Send a message, and flush it at once."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
