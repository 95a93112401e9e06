"""The level in play as an agent meets it: pixels instead of world units, pictures and ground truth instead of bodies.

It stands between the world and the game.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from openfield.domains.birds.actions import MAX_FRAMES, Shot, SlingshotLaunch, Wait, Watch
from openfield.domains.birds.files.pool import is_novel
from openfield.domains.birds.game import ground_truth as view
from openfield.domains.birds.game.forces import WINDS
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level
from openfield.domains.birds.game.physics import SECOND
from openfield.domains.birds.game.representation import remove_colours, show_picture, turn_scene, turn_spot
from openfield.domains.birds.game.scene import FIRST_WIND, SLING_ID, Scene, Viewport, see, zoomed_in, zoomed_out
from openfield.domains.birds.novelty import SIGNS
from openfield.domains.birds.picture.painting import pixels
from openfield.domains.birds.picture.thumbnail import thumbnail
from openfield.domains.birds.settings import BirdsSettings
from openfield.trial import derive

MAX_WATCH_SECONDS = 600.0
"""Agents ask for 20,000 steps so that everything comes to rest; under some winds it never does."""
GroundTruth = list[dict[str, Any]]


class LevelInPlay:
    """A level in play, its place in the trial, and the viewport through which the agent sees it."""

    def __init__(
        self, level: Level, settings: BirdsSettings, seed: int, *, name: str = "", index: int = 0, set_number: int = 0
    ) -> None:
        """Build the level; the seed is that of the noise, and the name is that of the script, with its changes."""
        self.name, self.index, self.set_number = name, index, set_number
        profile = None if settings.profile == "auto" else settings.profile
        self.game = Game(level, profile, settings.flight_seconds)
        self.frames: list[GroundTruth] = []
        """Ground truths recorded during the last shot or watch."""
        self.settings, self._seed = settings, seed
        self.played: list[Shot | SlingshotLaunch | Wait | Watch] = []
        """The actions in it so far, refused shots included."""
        self._shown = level.early.picture
        self._view: Viewport = zoomed_out(level.camera, settings.screen_size)
        self._initial = see(self.game, self._view)
        self._novel_at_start = _novel_ids(self.game)
        self._paused = False

    @property
    def rest(self) -> tuple[float, float]:
        """Rest position of a bird on the screen, not rounded: half a pixel turns a weak shot by some degrees."""
        spot = self._view.spot(*self.game.rest)
        return turn_spot(*spot, self._view.screen) if self._shown == "turned" else spot

    @property
    def novel_ids(self) -> list[list[int]]:
        """The ids of the novel objects: those there now, and those there at the start."""
        return [_novel_ids(self.game), self._novel_at_start]

    @property
    def novel(self) -> bool:
        """True if the level differs from a normal one."""
        return "#" in self.name or is_novel(self.name)

    @property
    def moving(self) -> bool:
        """True if anything happens by itself; false after a shot that was recorded only to its first contact."""
        return self.game.moving and not self._paused

    def zoom(self, way: str) -> None:
        """Zoom `in` or `out`."""
        camera = self.game.level.camera
        zoomed = zoomed_in if way == "in" else zoomed_out
        self._view = zoomed(camera, self._view.screen)

    def shoot(self, action: Shot | SlingshotLaunch) -> bool:
        """Shoot, and wait until everything rests unless the shot is a fast one; return whether a bird was shot."""
        game, self._paused = self.game, False
        self.played.append(action)
        if isinstance(action, SlingshotLaunch):
            side = -1 if self._shown == "turned" else 1
            launched = game.shoot(side * action.dx, side * action.dy, action.tap / 1000)
        else:
            turned = self._shown == "turned"
            spot = turn_spot(action.x, action.y, self._view.screen) if turned else (action.x, action.y)
            x, y = self._view.point(*spot)
            launched = game.shoot(game.rest[0] - x, game.rest[1] - y, action.tap / 1000)
        if launched:
            self._follow(action)
        return launched

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.played.append(Wait(seconds))
        self._run(seconds)

    def watch(self, every: int, frames: int) -> None:
        """Let time pass and record ground truths; record one if nothing moves."""
        self.played.append(Watch(every, frames))
        stop = self._keep(every, frames)
        self._run(min(every * frames / SECOND, MAX_WATCH_SECONDS))
        stop()
        if not self.frames and frames:
            self.frames.append(self.ground_truth(self.settings.noisy_batch))

    def copy(self) -> LevelInPlay:
        """Return the same level in the same state: its actions are repeated in a new one."""
        made = LevelInPlay(self.game.level, self.settings, self._seed, name=self.name, index=self.index)
        made.set_number = self.set_number
        made._view = self._view
        for action in self.played:
            match action:
                case Wait(seconds):
                    made.wait(seconds)
                case Watch(every, frames):
                    made.watch(every, frames)
                case _:
                    made.shoot(action)
        return made

    def show(self, picture: Any) -> Any:
        """Return a picture of the level as a novelty lets agents see it."""
        return show_picture(picture, self._shown)

    @property
    def turned(self) -> bool:
        """Whether agents see it upside down."""
        return self._shown == "turned"

    def ground_truth(self, noisy: bool) -> GroundTruth:
        """Return the ground truth; its noise is the same if it is asked for twice at the same step."""
        seed = derive(self._seed, "noise", self.game.steps)
        noise = view.Noise(random.Random(seed), self.settings.noise == "phyq") if noisy else None
        truth = view.ground_truth(self._scene(), self.settings.dev, noise)
        return remove_colours(truth) if self._shown == "grey" else truth

    def picture(self, initial: bool = False) -> Any:
        """Return a screenshot of now, or of the level as it was loaded."""
        scene = self._initial if initial else see(self.game, self._view)
        return self.show(pixels(scene))

    def observation(self) -> Any:
        """Return the observation of a turn, in the form that the settings ask for."""
        if self.settings.observe == "image":
            return self.picture()
        if self.settings.observe == "thumbnail":
            return self.show(thumbnail(see(self.game, self._view)))
        if self.settings.observe == "features":
            return view.compact(self._scene())
        return self.ground_truth(self.settings.noisy)

    def _run(self, seconds: float) -> None:
        self._paused = False
        self.game.run(seconds)

    def _scene(self) -> Scene:
        """Return what the agent sees of the level now, in pixels."""
        scene = see(self.game, self._view)
        return turn_scene(scene) if self._shown == "turned" else scene

    def _follow(self, action: Shot | SlingshotLaunch) -> None:
        """Run the game for as long as the shot says."""
        if isinstance(action, Shot) and action.fast:
            self.game.run_past_tap()
            return
        if isinstance(action, Shot) and action.every:
            stop = self._keep(action.every, MAX_FRAMES)
            self.frames.append(self.ground_truth(self.settings.noisy_batch))
            self.game.settle(action.until_contact)
            stop()
            self._paused = action.until_contact and bool(self.game.queue and self.game.pigs)
        if not self._paused:
            self.game.settle()

    def _keep(self, every: int, most: int) -> Callable[[], None]:
        """Record ground truths from now on; return a function that stops this."""
        self.frames = []

        def frame() -> None:
            if len(self.frames) < most:
                self.frames.append(self.ground_truth(self.settings.noisy_batch))

        return self.game.watch(every, frame)


def _novel_ids(game: Game) -> list[int]:
    """Return the ids of the objects that are there now and are in no normal level."""
    shown = [SLING_ID] if game.level.sling[0] > 0 else []
    signs = (body.id for body in game.bodies if body.changed or body.type in SIGNS or body.type.startswith("Pink"))
    waiting = game.queue[1:] if game.flying is not None else game.queue
    shown += [*signs, *(name for bird, name in waiting if _is_changed(game, bird))]
    winds = (placed.type in WINDS and placed.type in SIGNS for placed in game.level.objects)
    return shown + [FIRST_WIND - number for number, novel in enumerate(winds) if novel]


def _is_changed(game: Game, bird: str) -> bool:
    """Return whether a novelty has changed a bird that waits."""
    return bool(game.level.early.properties(bird, game.builder.base(bird)))
