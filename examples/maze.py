"""A complete domain in one file: a small maze in which left and right may be swapped at some point.

Try it: openfield run examples/maze.py --agent random --agent compass
"""

import random
from typing import Annotated, Any

import msgspec

import openfield as of

MOVES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


class MazeSettings(of.Settings, frozen=True):
    """Everything that can change in a maze, and the length of a trial."""

    size: Annotated[int, msgspec.Meta(ge=3, le=20, description="Cells along each side.")] = 6
    walls: Annotated[float, msgspec.Meta(ge=0, le=0.4, description="Share of cells that are blocked.")] = 0.2
    patience: Annotated[int, msgspec.Meta(ge=1, description="Moves until an episode is cut off.")] = 60
    swapped: Annotated[bool, msgspec.Meta(description="Left goes right and right goes left.")] = False
    slip: Annotated[float, msgspec.Meta(ge=0, le=1, description="Chance that a move goes astray.")] = 0.0
    training: Annotated[int, msgspec.Meta(ge=0, description="Episodes of training.")] = 5
    before: Annotated[int, msgspec.Meta(ge=0, description="Test episodes before the onset.")] = 10
    after: Annotated[int, msgspec.Meta(ge=0, description="Test episodes from the onset on.")] = 15


class MazePlay:
    """One episode, from a random cell to a random goal."""

    def __init__(self, settings: MazeSettings, rng: random.Random) -> None:
        self.settings, self.rng, self.moves, self.shortest = settings, rng, 0, 0
        self.reward, self.performance = 0.0, 0.0
        self.ended: of.core.Ending | None = None
        cells = [(x, y) for x in range(settings.size) for y in range(settings.size)]
        while not self.shortest:  # draw again until the goal can be reached
            self.free = set(rng.sample(cells, round((1 - settings.walls) * len(cells))))
            self.at, self.goal = rng.sample(sorted(self.free), 2)
            self.shortest = self._distance()
        self.observation = self._see()

    def move(self, action: Any) -> None:
        """Go one cell if it is free. The performance is the shortest way divided by the moves made."""
        if not isinstance(action, str) or action not in MOVES:
            raise of.errors.AgentProtocol(f"unknown action {action!r}; known are {', '.join(MOVES)}")
        dx, dy = MOVES[self.rng.choice(list(MOVES)) if self.rng.random() < self.settings.slip else action]
        self.at = self._towards(self.at, (-dx if self.settings.swapped else dx, dy))
        self.moves += 1
        self.reward = float(self.at == self.goal)
        self.performance = self.reward * self.shortest / self.moves
        self.ended = "terminated" if self.reward else "truncated" if self.moves >= self.settings.patience else None
        self.observation = self._see()

    def _see(self) -> dict[str, list[int]]:
        is_open = [int(self._towards(self.at, step) != self.at) for step in MOVES.values()]
        return {"at": list(self.at), "goal": list(self.goal), "open": is_open}

    def _towards(self, here: tuple[int, int], step: tuple[int, int]) -> tuple[int, int]:
        there = (here[0] + step[0], here[1] + step[1])
        return there if there in self.free else here

    def _distance(self) -> int:
        reached, edge, moves = {self.at}, {self.at}, 0
        while edge and self.goal not in reached:
            edge = {self._towards(here, step) for here in edge for step in MOVES.values()} - reached
            reached, moves = reached | edge, moves + 1
        return moves if self.goal in reached else 0


class Compass:
    """An agent that knows what its moves do, notices when they do something else, and learns it."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.rng, self.effects, self.surprise = random.Random(seed), {n: list(step) for n, step in MOVES.items()}, 0.0
        self.was, self.tried = [0, 0], ""

    def __call__(self, turn: of.Turn) -> of.Reply:
        at, goal, is_open = (turn.observation[key] for key in ("at", "goal", "open"))
        went = [at[0] - self.was[0], at[1] - self.was[1]]
        if self.tried and not turn.first and went != [0, 0] and went != self.effects[self.tried]:
            self.effects[self.tried], self.surprise = went, min(1.0, self.surprise + 0.5)
        ways = [list(step) for step, free in zip(MOVES.values(), is_open, strict=True) if free]
        best = min(ways, key=lambda way: abs(at[0] + way[0] - goal[0]) + abs(at[1] + way[1] - goal[1]))
        way = best if self.rng.random() < 0.8 else self.rng.choice(ways)
        known = [name for name, effect in self.effects.items() if effect == way]
        self.was, self.tried = at, known[0] if known else self.rng.choice(list(MOVES))
        return of.Reply(self.tried, of.Belief(self.surprise))


class Maze(of.Domain[MazeSettings]):
    """The domain, which puts all parts together."""

    name, title, settings = "maze", "A small maze in which left and right may be swapped", MazeSettings
    agents = {"compass": Compass}
    default_novelty, demo_agents = "swapped", ("compass", "random")
    novelties = (
        of.Novelty("swapped", 3, "actions", "left and right are swapped", lambda s: msgspec.structs.replace(s, swapped=True)),
        of.Novelty("slip", 6, "rules", "a fifth of moves go astray", lambda s: msgspec.structs.replace(s, slip=0.2), "easy"),
        of.Novelty("slip", 6, "rules", "half of all moves go astray", lambda s: msgspec.structs.replace(s, slip=0.5), "hard"),
    )  # fmt: skip

    def spec(self, trial: of.Trial) -> of.Spec:
        """Return the agent's knowledge before the trial starts."""
        place = of.spaces.Box(0, self.settings_in(trial, trial.phases[0]).size - 1, (2,), "int64")
        actions = of.spaces.Choice(tuple(MOVES))
        seen = of.spaces.Fields({"at": place, "goal": place, "open": of.spaces.Box(0, 1, (4,), "int64")})
        return of.Spec(domain=self.name, task="Reach the goal.", actions=actions, observations=seen)

    def phases(self, settings: MazeSettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        """Return the script of a trial: training, test as usual, test with the novelty."""
        early = of.Phase("training", settings.training), of.Phase("test", settings.before)
        return (*early, of.Phase("test", settings.after, novelty))

    def world(self, trial: of.Trial) -> of.World:
        """Make the world that plays the script."""
        return of.EpisodicWorld(self, trial, MazePlay)


MAZE = Maze()
