"""Birds in a browser: a person pulls the sling, lets go, watches the shot and clicks for the bird's power.

The engine needs to know before the shot when the power is used. So the shot is first played without it in a copy of the
level, which the person watches. A click says when; then the shot is played for good, and shown from there on.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Any

import msgspec

from openfield.core import Ask, Reply, Turn, World
from openfield.domains.birds.actions import SlingshotLaunch
from openfield.domains.birds.agents.birds_writer import ENDINGS, BirdsWriter
from openfield.domains.birds.game.representation import turn_spot
from openfield.domains.birds.game.scene import see, zoomed_out
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.picture.camera import FilmCamera
from openfield.domains.birds.picture.film import FPS, LevelFilm
from openfield.domains.birds.picture.painting import pixels
from openfield.domains.birds.world import BirdsWorld
from openfield.errors import AgentProtocol

EVERY = 2
"""One of this many pictures of a film is shown: painting one takes as long as it is shown in a full film."""
PACE = 1.25
"""How much faster than in the world a shot is shown."""


class SlingPage:
    """Plays a trial of birds."""

    kind = "sling"
    film_milliseconds = 1000 * EVERY / FPS / PACE

    def __init__(self) -> None:
        self._level: LevelInPlay | None = None
        self._copy: LevelInPlay | None = None
        self._films: dict[LevelInPlay, LevelFilm] = {}

    def describe(self) -> dict[str, Any]:
        """Return the task in words for people."""
        return {"task": BirdsWriter.task}

    def is_ready(self, turn: Turn) -> bool:
        """Return whether a beginning needs no word of the person: a level does, sets of levels do not."""
        return not isinstance(turn.observation, dict) or turn.observation.get("begins") != "level"

    def show(self, turn: Turn, world: World) -> dict[str, Any]:
        """Return a picture of the level, where its sling is, and what the agent knows of it."""
        level = world.in_play if isinstance(world, BirdsWorld) else None
        if turn.ask is Ask.READY or level is None:
            return {"title": _name_level(turn)}
        self._level = level
        scene = see(level.game, zoomed_out(level.game.level.camera))
        view = FilmCamera(scene).view
        x, y = view.spot(*level.game.rest)
        feedback = turn.feedback or {}
        shown = {
            "picture": level.show(pixels(msgspec.structs.replace(scene, view=view))),
            "values": {"score": f"{feedback.get('score', 0):,}"},
        }
        if turn.last is not None:
            return {**shown, "title": ENDINGS.get(feedback.get("state", ""), "The level is over")}
        spot = turn_spot(x, y) if level.turned else (x, y)
        sling = {"x": spot[0], "y": spot[1], "pull": view.scale, "ready": level.game.bird_ready}
        sling["power"] = level.game.has_power
        return {**shown, "sling": sling}

    def act(self, act: Any, turn: Turn) -> Generator[Reply, Turn, None]:
        """Yield a launch. One with a tap was watched before."""
        launch, level = read_launch(act), self._level
        if level is None:
            raise AgentProtocol("There is no level yet.")
        self._follow(level)
        yield Reply(msgspec.to_builtins(launch))

    def join(self, committed: Any, act: Any) -> Any:
        """Return the act that was watched, with a tap if the person has clicked meanwhile."""
        tapped = isinstance(act, dict) and act.get("tap")
        valid = isinstance(tapped, int) and not isinstance(tapped, bool) and 0 < tapped < 10_000
        return {**committed, "tap": tapped} if valid else committed

    def preview(self, act: Any) -> Iterator[Any]:
        """Play a shot in a copy of the level, and return its pictures."""
        launch, level = read_launch(act), self._level
        if level is None:
            raise AgentProtocol("There is no level yet.")
        if self._copy is None or self._copy.game.level is not level.game.level or self._copy.played != level.played:
            self._copy = level.copy()
        film = self._follow(self._copy)
        self._copy.shoot(launch)
        return map(level.show, film.take(EVERY))

    def pictures(self, seen: int = 0) -> Iterator[Any]:
        """Return the pictures of the last shot, without those that were seen before."""
        level = self._level
        return iter(()) if level is None else map(level.show, self._follow(level).take(EVERY, seen))

    def _follow(self, level: LevelInPlay) -> LevelFilm:
        """Return the film of a level; those of others are forgotten."""
        self._films = {each: film for each, film in self._films.items() if each in (self._level, self._copy)}
        if level not in self._films:
            self._films[level] = LevelFilm(level.game, staged=False)
        return self._films[level]


def _name_level(turn: Turn) -> str:
    """Say in words what comes next."""
    observation = turn.observation if isinstance(turn.observation, dict) else {}
    number, count = observation.get("level", 0) + 1, len(observation.get("scores", ()))
    kind = "Practice level" if turn.phase == "training" else "Level"
    return f"{kind} {number} of {count}" if count else "Next level"


def read_launch(act: Any) -> SlingshotLaunch:
    """Return the launch that an act means: how far the sling is pulled, and at which picture the power is used.

    Raises:
        AgentProtocol: It is malformed.
    """
    try:
        dx, dy, tap = float(act["dx"]), float(act["dy"]), int(act.get("tap", 0))
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError):
        raise AgentProtocol("A shot needs to know how far the sling is pulled.") from None
    length = math.hypot(dx, dy)
    if not math.isfinite(length) or not 0 < length <= 1.001 or not 0 <= tap < 10_000:
        raise AgentProtocol("The sling cannot be pulled that far.")
    return SlingshotLaunch(round(dx, 4), round(dy, 4), round(tap * EVERY * 1000 / FPS))
