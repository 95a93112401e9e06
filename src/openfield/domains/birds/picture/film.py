"""Films of a game: thirty pictures a second of simulated time, whatever the speed of the machine.

The engine makes fifty steps a second. A film notes the scene after every step and paints moments between two of them,
so that motion is even. Only painting costs time, and it waits until the pictures are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.physics import SECOND
from openfield.domains.birds.game.scene import Scene, SceneItem, see, zoomed_out
from openfield.domains.birds.picture.camera import FilmCamera
from openfield.domains.birds.picture.painting import pixels
from openfield.domains.birds.picture.particles import LIFETIME, Burst, find_bursts, fly
from openfield.domains.birds.picture.sprites import Point

FPS = 30
INTRO, PULL, AIM, REST = 0.6, 0.45, 0.25, 0.5
"""Seconds that show a level before its first shot, a sling being pulled, a sling held, and the start of a stillness."""
TURNING = 0.2
"""Units. How far a body that turns by a radian counts as moved: about the radius of a bird."""
STILL, CREEP = 0.01, 0.1
"""Units. What moves less than the first from one picture to the next counts as still. After half a second of that it is
shown again when it has moved by the second, so that the film does not wait for a bird that creeps."""


class LevelFilm:
    """The film of one level: pass it each step, then take its pictures."""

    def __init__(self, game: Game, staged: bool = True) -> None:
        """Begin with the level as it is now, and follow every step from here on.

        Args:
            game: The game of the level.
            staged: Whether the level is shown before, and the sling being pulled; a person who plays has done that.
        """
        self._game, self._staged = game, staged
        self._last = self._see()
        self._camera = FilmCamera(self._last)
        self._moments: list[Callable[[], Any]] = []
        self._bursts: list[Burst] = []
        self._time = self._drawn = 0.0
        self._still = 0.0
        self._launch = -1
        self._before = self._shown = self._last
        if staged:
            self._hold(INTRO)
        game.watch(1, self._step)

    def take(self, every: int = 1, skipped: int = 0) -> Iterator[Any]:
        """Yield the pictures since the last call, at an interval and without some of the first."""
        moments, self._moments = self._moments, []
        return (paint() for paint in moments[::every][skipped:])

    def _see(self) -> Scene:
        return see(self._game, zoomed_out(self._game.level.camera))

    def _step(self) -> None:
        """Note the changes of a step, and every picture whose time has come."""
        scene, bird = self._see(), self._game.flying
        if bird is not None and bird.launch != self._launch and self._staged:
            self._launch = bird.launch
            velocity, speed = bird.physical.linearVelocity, self._game.profile.launch_speed
            self._pull((velocity.x / speed, velocity.y / speed))
        before, start = self._last, self._time
        self._time += 1 / SECOND
        self._bursts += find_bursts(before, scene, self._time)
        while self._drawn + 1 / FPS <= self._time + 1e-9:
            self._drawn += 1 / FPS
            share = min(1.0, (self._drawn - start) * SECOND)
            self._note(blend_scenes(before, scene, share))
        self._last = scene

    def _pull(self, launch: Point) -> None:
        """Show the bird being pulled back; for the engine it starts there."""
        ready = next((item for item in self._last.items if item.turn == 0), None)
        count = round(PULL * FPS)
        if ready is None or math.hypot(*launch) < 0.05:
            return
        for number in (*range(1, count + 1), *[count] * round(AIM * FPS)):
            share = math.sin(number / count * math.pi / 2)
            place = ready.place[0] - share * launch[0], ready.place[1] - share * launch[1]
            pulled = msgspec.structs.replace(ready, place=place)
            items = tuple(pulled if item.turn == 0 else item for item in self._last.items)
            self._pass(msgspec.structs.replace(self._last, items=items))

    def _hold(self, seconds: float) -> None:
        for _ in range(round(seconds * FPS)):
            self._pass(self._last)

    def _pass(self, scene: Scene) -> None:
        """Note a picture of a moment at which the engine does nothing."""
        self._drawn += 1 / FPS
        self._time += 1 / FPS
        self._note(scene, always=True)

    def _note(self, scene: Scene, always: bool = False) -> None:
        """Note a picture; after half a second of stillness time is cut, so that slow rolling does not last."""
        time = self._drawn
        self._bursts = [burst for burst in self._bursts if time - burst.time < LIFETIME]
        flies = self._game.flying is not None
        view = self._camera.follow(scene, 1 / FPS, whole=always or not (flies or self._bursts or self._still < REST))
        steady = not (always or self._bursts) and _alike(scene, self._before)
        self._still, self._before = (self._still + 1 / FPS if steady else 0.0), scene
        if self._still > REST and _alike(scene, self._shown, CREEP):
            return
        self._shown = scene
        bursts = tuple(self._bursts)
        framed = msgspec.structs.replace(scene, view=view)
        self._moments.append(lambda: pixels(framed, (part for burst in bursts for part in fly(burst, time))))


def blend_scenes(before: Scene, after: Scene, share: float) -> Scene:
    """Return a scene between two, with a share of the second."""
    known = {item.id: item for item in before.items}
    items = tuple(_between(known[item.id], item, share) if item.id in known else item for item in after.items)
    return msgspec.structs.replace(after, items=items)


def _between(before: SceneItem, after: SceneItem, share: float) -> SceneItem:
    if before.turn != after.turn or math.dist(before.place, after.place) > 0.6:  # a bird hopped onto the sling
        return after
    place = tuple(a + share * (b - a) for a, b in zip(before.place, after.place, strict=True))
    angle = before.angle + share * (after.angle - before.angle)
    return msgspec.structs.replace(after, place=place, angle=angle)


def _alike(scene: Scene, shown: Scene, way: float = STILL) -> bool:
    """Return whether nothing has moved farther than a way since a scene."""
    if len(shown.items) != len(scene.items):
        return False
    return all(
        a.id == b.id and math.dist(a.place, b.place) + TURNING * abs(a.angle - b.angle) < way
        for a, b in zip(scene.items, shown.items, strict=True)
    )
