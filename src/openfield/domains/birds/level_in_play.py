"""A level in play as an agent meets it: pixels instead of units, pictures and ground truths instead of bodies.

Stands between world and game.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from openfield.domains.birds.actions import MAX_FRAMES, Shot, SlingshotLaunch
from openfield.domains.birds.game import drawing
from openfield.domains.birds.game import ground_truth as view
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level
from openfield.domains.birds.game.physics import SECOND
from openfield.domains.birds.game.scene import novel_ids, see
from openfield.domains.birds.game.viewport import Viewport, zoomed_in, zoomed_out
from openfield.domains.birds.settings import BirdsSettings
from openfield.trial import derive

MAX_WATCH_SECONDS = 600.0
"""Seconds; agents ask for 20,000 steps to have everything rest, and some winds never do."""
GroundTruth = list[dict[str, Any]]


class LevelInPlay:
    """A level in play."""

    game: Game

    def __init__(self, level: Level, settings: BirdsSettings, seed: int) -> None:
        profile = None if settings.profile == "auto" else settings.profile
        self.game = Game(level, profile, settings.flight_seconds)
        self.birds_at_start = len(level.birds)
        self.frames: list[GroundTruth] = []
        """Ground truths kept during the last shot or watch."""
        self._settings, self._seed = settings, seed
        self._view: Viewport = zoomed_out(level.camera)
        self._initial = see(self.game, self._view)
        self._novel_at_start = novel_ids(self.game)
        self._paused = False

    @property
    def rest(self) -> tuple[float, float]:
        """Where on the screen a bird rests on the sling; half a pixel would turn a weak shot by some degrees."""
        return self._view.spot(*self.game.rest)

    @property
    def novel_ids(self) -> list[list[int]]:
        """The ids of what is novel in the level: what is left of it, and all there was."""
        return [novel_ids(self.game), self._novel_at_start]

    @property
    def moving(self) -> bool:
        """Whether anything happens by itself; after a shot that was watched to its first contact nothing does."""
        return self.game.moving and not self._paused

    def zoom(self, way: str) -> None:
        """Moves the camera."""
        camera = self.game.level.camera
        self._view = zoomed_in(camera) if way == "in" else zoomed_out(camera)

    def shoot(self, action: Shot | SlingshotLaunch) -> bool:
        """Shoots, and waits until everything rests if the shot is not a fast one; says whether a bird was shot."""
        game, self._paused = self.game, False
        if isinstance(action, SlingshotLaunch):
            launched = game.shoot(action.dx, action.dy, action.tap / 1000)
        else:
            x, y = self._view.point(action.x, action.y)
            launched = game.shoot(game.rest[0] - x, game.rest[1] - y, action.tap / 1000)
        if launched:
            self._follow(action)
        return launched

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        self._paused = False
        self.game.run(seconds)

    def watch(self, every: int, frames: int) -> None:
        """Lets time pass and keeps ground truths; where all rests from the start, one."""
        stop = self._keep(every, frames)
        self.wait(min(every * frames / SECOND, MAX_WATCH_SECONDS))
        stop()
        if not self.frames and frames:
            self.frames.append(self.ground_truth(self._settings.noisy_batch))

    def ground_truth(self, noisy: bool) -> GroundTruth:
        """What is where; asked twice at the same moment it has the same noise."""
        seed = derive(self._seed, "noise", self.game.steps)
        noise = view.Noise(random.Random(seed), self._settings.noise == "phyq") if noisy else None
        return view.ground_truth(see(self.game, self._view), self._settings.dev, noise)

    def picture(self, initial: bool = False) -> Any:
        """A screenshot of now, or of the level as it was loaded."""
        return drawing.pixels(self._initial if initial else see(self.game, self._view))

    def observation(self) -> Any:
        """What a turn shows."""
        if self._settings.observe == "image":
            return self.picture()
        if self._settings.observe == "features":
            return view.compact(see(self.game, self._view))
        return self.ground_truth(self._settings.noisy)

    def _follow(self, action: Shot | SlingshotLaunch) -> None:
        """Lets happen of a shot what is waited for."""
        if isinstance(action, Shot) and action.fast:
            self.game.run_past_tap()
            return
        if isinstance(action, Shot) and action.every:
            stop = self._keep(action.every, MAX_FRAMES)
            self.frames.append(self.ground_truth(self._settings.noisy_batch))
            self.game.settle(action.until_contact)
            stop()
            self._paused = action.until_contact and bool(self.game.queue and self.game.pigs)
        if not self._paused:
            self.game.settle()

    def _keep(self, every: int, most: int) -> Callable[[], None]:
        """Keeps ground truths from now on, until what is returned is called."""
        self.frames = []

        def frame() -> None:
            if len(self.frames) < most:
                self.frames.append(self.ground_truth(self._settings.noisy_batch))

        return self.game.watch(every, frame)
