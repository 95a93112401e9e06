"""A complete domain in one file: catch the falling ball. Left and right may be swapped, or wind may blow.

Try it: openfield run examples/catch.py --agent follower --agent random
"""

import random
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

import openfield as of

MOVES = {"left": -1, "stay": 0, "right": 1}


class CatchSettings(of.Settings, frozen=True):
    """Everything that can differ between two worlds, and the length of a trial."""

    width: Annotated[int, Meta(ge=3, le=50, description="Columns of the board.")] = 9
    height: Annotated[int, Meta(ge=3, le=50, description="Rows of the board.")] = 8
    swapped: Annotated[bool, Meta(description="Left goes right and right goes left.")] = False
    wind: Annotated[float, Meta(ge=0, le=1, description="Chance per row that the ball drifts to the right.")] = 0.0
    training: Annotated[int, Meta(ge=0, description="Training episodes.")] = 5
    before: Annotated[int, Meta(ge=0, description="Test episodes before the onset.")] = 10
    after: Annotated[int, Meta(ge=0, description="Test episodes from the onset on.")] = 15


class CatchEpisode:
    """One ball, from the top row to the bottom row."""

    def __init__(self, settings: CatchSettings, rng: random.Random) -> None:
        self.settings, self.rng = settings, rng
        self.ball, self.row, self.paddle = rng.randrange(settings.width), 0, settings.width // 2
        self.reward = self.performance = 0.0
        self.ended: of.core.Ending | None = None
        self.observation = self._see()

    def move(self, action: Any) -> None:
        """Move the paddle and let the ball fall by one row."""
        if not isinstance(action, str) or action not in MOVES:
            raise of.errors.AgentProtocol(f"unknown action {action!r}; the actions are {', '.join(MOVES)}")
        step = -MOVES[action] if self.settings.swapped else MOVES[action]
        self.paddle = min(max(self.paddle + step, 0), self.settings.width - 1)
        self.ball = (self.ball + (self.rng.random() < self.settings.wind)) % self.settings.width
        self.row += 1
        self.observation = self._see()
        if self.row == self.settings.height - 1:
            self.reward = self.performance = float(self.paddle == self.ball)
            self.ended = "terminated"

    def _see(self) -> dict[str, int]:
        return {"ball": self.ball, "row": self.row, "paddle": self.paddle}

    def look(self, query: str) -> Any:
        """Draw the board: an array of height, width and three colours."""
        import numpy as np  # here, so that `openfield list` stays fast

        board = np.zeros((self.settings.height, self.settings.width, 3), np.uint8)
        board[-1, self.paddle], board[self.row, self.ball] = (255, 255, 255), (255, 160, 0)
        return board.repeat(16, axis=0).repeat(16, axis=1)


class Follower:
    """An agent that follows the ball, and reports a novelty once a move does not do what it should."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.novel, self.expected = 0.0, 0

    def __call__(self, turn: of.Turn) -> of.Reply:
        ball, paddle = turn.observation["ball"], turn.observation["paddle"]
        if not turn.first and paddle != self.expected:
            self.novel = 1.0
        move = "left" if ball < paddle else "right" if ball > paddle else "stay"
        self.expected = paddle + MOVES[move]
        return of.Reply(move, of.Belief(self.novel))


class Catch(of.Domain[CatchSettings]):
    """The domain, which puts all parts together."""

    name, title, settings = "catch", "Catch the falling ball", CatchSettings
    novelties = (
        of.Novelty("swapped", 3, "actions", "left and right are swapped", lambda s: replace(s, swapped=True)),
        of.Novelty("wind", 6, "rules", "the ball drifts now and then", lambda s: replace(s, wind=0.3), "easy"),
        of.Novelty("wind", 6, "rules", "the ball drifts most of the time", lambda s: replace(s, wind=0.8), "hard"),
    )
    default_novelty, agents, demo_agents = "swapped", {"follower": Follower}, ("follower", "random")

    def spec(self, trial: of.Trial) -> of.Spec:
        """Return the agent's knowledge before the trial starts."""
        settings = self.settings_in(trial, trial.phases[0])
        column, row = of.spaces.Discrete(settings.width), of.spaces.Discrete(settings.height)
        actions, seen = of.spaces.Choice(tuple(MOVES)), of.spaces.Fields({"ball": column, "row": row, "paddle": column})
        return of.Spec(domain=self.name, task="Catch the ball.", actions=actions, observations=seen)

    def phases(self, settings: CatchSettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        """Return the script of a trial: training, test as usual, test with the novelty."""
        usual = of.Phase("training", settings.training), of.Phase("test", settings.before)
        return (*usual, of.Phase("test", settings.after, novelty))

    def world(self, trial: of.Trial) -> of.World:
        """Make the world that plays the script."""
        return of.EpisodicWorld(self, trial, CatchEpisode)

    def film(self, trial: of.Trial) -> of.capabilities.Film:
        """Return a world of the trial, and the function that draws it after every turn."""
        world = self.world(trial)
        return of.capabilities.Film(world, lambda: [world.look("board")], milliseconds=200)


CATCH = Catch()
