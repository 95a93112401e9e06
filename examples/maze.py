"""A whole domain in one file: a small maze in which left and right may one day be swapped.

Try it: openfield run examples/maze.py --agent random --agent compass
"""

import random
from collections import deque
from typing import Annotated, Any

import msgspec

import openfield as of
from openfield.core import Ending
from openfield.errors import AgentProtocol

MOVES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
Cell = tuple[int, int]


class MazeSettings(of.Settings, frozen=True):
    """What can be changed about a maze, and how long its trials are."""

    size: Annotated[int, msgspec.Meta(ge=3, le=20, description="Cells along each side.")] = 6
    walls: Annotated[float, msgspec.Meta(ge=0, le=0.4, description="Share of cells that are blocked.")] = 0.2
    patience: Annotated[int, msgspec.Meta(ge=1, description="Moves until an episode is cut off.")] = 60
    swapped: Annotated[bool, msgspec.Meta(description="Left goes right and right goes left.")] = False
    slip: Annotated[float, msgspec.Meta(ge=0, le=1, description="Chance that a move goes astray.")] = 0.0
    training: Annotated[int, msgspec.Meta(ge=0, description="Episodes of training.")] = 5
    before: Annotated[int, msgspec.Meta(ge=0, description="Test episodes before the onset.")] = 10
    after: Annotated[int, msgspec.Meta(ge=0, description="Test episodes from the onset on.")] = 15


class MazePlay:
    """One episode: from a random cell to a random goal."""

    reward = 0.0
    ended: Ending | None = None

    def __init__(self, settings: MazeSettings, rng: random.Random) -> None:
        self.settings, self.rng, self.moves, self.shortest = settings, rng, 0, 0
        cells = [(x, y) for x in range(settings.size) for y in range(settings.size)]
        while not self.shortest:  # until the goal can be reached
            blocked = set(rng.sample(cells, int(settings.walls * len(cells))))
            self.free = [cell for cell in cells if cell not in blocked]
            self.at, self.goal = rng.sample(self.free, 2)
            self.shortest = self._distance()

    @property
    def observation(self) -> dict[str, list[int]]:
        """Where the agent is, where it should be, and which of left, right, up, down are open."""
        open_ways = [int(self._towards(step) != self.at) for step in MOVES.values()]
        return {"at": list(self.at), "goal": list(self.goal), "open": open_ways}

    @property
    def performance(self) -> float:
        """The shortest way divided by the way taken; nothing for a goal not reached."""
        return self.shortest / self.moves if self.at == self.goal else 0.0

    def move(self, action: Any) -> None:
        """Goes one cell, if the way is free."""
        if action not in MOVES:
            raise AgentProtocol(f"unknown action {action!r}; known are {', '.join(MOVES)}")
        dx, dy = self.rng.choice(list(MOVES.values())) if self.rng.random() < self.settings.slip else MOVES[action]
        self.at = self._towards((-dx, dy) if self.settings.swapped else (dx, dy))
        self.moves += 1
        self.reward = float(self.at == self.goal)
        self.ended = "terminated" if self.reward else "truncated" if self.moves == self.settings.patience else None

    def _towards(self, step: Cell, start: Cell | None = None) -> Cell:
        x, y = start or self.at
        there = (x + step[0], y + step[1])
        return there if there in self.free else (x, y)

    def _distance(self) -> int:
        far, queue = {self.at: 0}, deque([self.at])
        while queue:
            here = queue.popleft()
            for there in {self._towards(step, here) for step in MOVES.values()} - far.keys():
                far[there] = far[here] + 1
                queue.append(there)
        return far.get(self.goal, 0)


class Compass:
    """An agent that knows what its moves do, notices when they do something else, and learns that."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.rng, self.effect, self.tried, self.surprise = random.Random(seed), dict(MOVES), "", 0.0

    def __call__(self, turn: of.Turn) -> of.Reply:
        (x, y), (goal_x, goal_y) = turn.observation["at"], turn.observation["goal"]
        if self.tried and not turn.first and (x, y) != self.was:
            self._learn((x - self.was[0], y - self.was[1]))
        self.was = (x, y)
        ways = [move for move, is_open in zip(MOVES.values(), turn.observation["open"], strict=True) if is_open]
        best = min(ways, key=lambda way: abs(x + way[0] - goal_x) + abs(y + way[1] - goal_y))
        way = best if self.rng.random() < 0.8 else self.rng.choice(ways)
        self.tried = next((name for name, step in self.effect.items() if step == way), self.rng.choice(list(MOVES)))
        return of.Reply(self.tried, of.Belief(self.surprise))

    def save(self) -> bytes:
        return msgspec.json.encode([self.rng.getstate(), self.effect, self.tried, self.surprise])

    def load(self, state: bytes) -> None:
        rng, self.effect, self.tried, self.surprise = msgspec.json.decode(
            state, type=tuple[Any, dict[str, Cell], str, float]
        )
        self.rng.setstate((rng[0], tuple(rng[1]), rng[2]))

    def _learn(self, went: Cell) -> None:
        if went != self.effect[self.tried]:
            self.effect[self.tried], self.surprise = went, min(1.0, self.surprise + 0.5)


class Maze(of.Domain[MazeSettings]):
    """The domain: everything above under one name."""

    name, title, settings = "maze", "A small maze in which left and right may be swapped", MazeSettings
    novelties = (
        of.Novelty("swapped", 3, "actions", "left and right are swapped", lambda s: msgspec.structs.replace(s, swapped=True)),
        of.Novelty("slip", 6, "rules", "every fifth move goes astray", lambda s: msgspec.structs.replace(s, slip=0.2), "easy"),
        of.Novelty("slip", 6, "rules", "every second move goes astray", lambda s: msgspec.structs.replace(s, slip=0.5), "hard"),
    )  # fmt: skip
    agents = {"compass": Compass}
    default_novelty, demo_agents = "swapped", ("compass", "random")

    def spec(self, trial: of.Trial) -> of.Spec:
        size = self.settings_in(trial, trial.phases[0]).size
        place = of.Box(0, size - 1, (2,), "int64")
        seen = of.Fields({"at": place, "goal": place, "open": of.Box(0, 1, (4,), "int64")})
        return of.Spec(domain=self.name, task="Reach the goal.", actions=of.Choice(tuple(MOVES)), observations=seen)

    def phases(self, settings: MazeSettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        early = (of.Phase("training", settings.training), of.Phase("test", settings.before))
        return (*early, of.Phase("test", settings.after, novelty))

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, MazePlay)


MAZE = Maze()
