"""A film has thirty even pictures a second of simulated time, frames what happens, and is the same every time."""

import itertools
import math

import msgspec
import numpy as np
import pytest

from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Camera, Level, LevelObject
from openfield.domains.birds.game.physics import SECOND
from openfield.domains.birds.game.scene import see, zoomed_out
from openfield.domains.birds.picture import film as film_module
from openfield.domains.birds.picture.film import FPS, LevelFilm
from openfield.domains.birds.picture.particles import LIFETIME, find_bursts, fly
from openfield.domains.birds.play_page import PACE

OBJECTS = (
    LevelObject(kind="Pig", type="BasicSmall", x=2.0, y=-3.28),
    LevelObject(kind="Block", type="RectSmall", material="ice", x=1.4, y=-3.07, rotation=90),
)
LEVEL = Level(birds=("BirdRed",), objects=OBJECTS, camera=Camera(0, -1, 25, 35))
LAUNCH = math.radians(20)


@pytest.fixture(scope="module")
def filmed():
    """Scenes, particles and pictures of a shot; only some pictures are painted, as painting takes the time."""
    noted = []

    def note(scene, particles=()):
        noted.append((scene, list(particles)))
        return scene

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_module, "pixels", note)
        for _ in range(2):
            game = Game(LEVEL)
            film = LevelFilm(game)
            game.shoot(math.cos(LAUNCH), math.sin(LAUNCH))
            game.settle()
            list(film.take())
            assert list(film.take()) == []
    half = len(noted) // 2
    return game, noted[:half], noted[half:]


def test_the_same_shots_give_the_same_film(filmed):
    _, first, second = filmed
    assert [scene for scene, _ in first] == [scene for scene, _ in second]
    places = [[(part.place, part.angle, part.fade) for part in parts] for _, parts in first]
    assert places == [[(part.place, part.angle, part.fade) for part in parts] for _, parts in second]
    assert any(places)


def test_a_bird_moves_evenly_thirty_times_a_second(filmed):
    flight = [item.place for scene, _ in filmed[1] for item in scene.items if item.rank == "bird" and item.turn < 0]
    steps = [math.dist(a, b) for a, b in itertools.pairwise(flight)][1:15]
    assert steps == pytest.approx([10 / FPS] * len(steps), rel=0.2)
    turns = np.diff(steps)
    assert abs(turns).max() < 0.02  # uneven pictures of a 50 Hz engine would differ by a tenth of a unit


def test_the_sling_is_pulled_before_the_bird_flies(filmed):
    pulls = [item.place for scene, _ in filmed[1] for item in scene.items if item.turn == 0]
    assert math.dist(pulls[0], pulls[-1]) == pytest.approx(1.0, abs=0.05)


def test_the_camera_keeps_the_bird_and_comes_nearer(filmed):
    widths = []
    for scene, _ in filmed[1]:
        widths.append(scene.view.width)
        for item in scene.items:
            if item.rank == "bird" and item.turn < 0 and item.stage == 1:
                x, y = scene.view.spot(*item.place)
                assert 0 <= x < 640
                assert 0 <= y < 480
    assert min(widths) < 0.7 * widths[0]
    assert max(abs(b / a - 1) for a, b in itertools.pairwise(widths)) < 0.1


def test_time_without_motion_is_cut(filmed):
    game, first, _ = filmed
    assert len(first) < game.seconds * FPS


def test_what_breaks_leaves_particles_for_a_while():
    before = see(Game(LEVEL), zoomed_out(LEVEL.camera))
    after = msgspec.structs.replace(before, items=tuple(item for item in before.items if item.look != "ice"))
    bursts = list(find_bursts(before, after, 2.0))
    assert [(burst.kind, burst.look) for burst in bursts] == [("break", "ice")]
    counts = [len(list(fly(bursts[0], 2.0 + age))) for age in (-0.1, 0.0, 0.5, LIFETIME)]
    assert counts[0] == counts[3] == 0 < counts[2] <= counts[1]


def test_pictures_are_painted_when_asked_for():
    game = Game(LEVEL)
    film = LevelFilm(game)
    first = next(film.take())
    assert first.shape == (480, 640, 3)


@pytest.mark.parametrize("degrees", [10, 70])
def test_a_person_waits_no_more_than_three_seconds_for_what_creeps_and_rests(monkeypatch, pool, degrees):
    monkeypatch.setattr(film_module, "pixels", lambda scene, particles=(): None)
    game = Game(pool.level(pool.names(0, "010102")[0]))
    film, speeds = LevelFilm(game, staged=False), []
    game.watch(1, lambda: speeds.append((len(film._moments), max(body.speed for body in game.bodies))))
    game.shoot(math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))
    game.settle()
    total = len(list(film.take()))
    moved = max(count for count, speed in speeds if speed > 0.3)
    assert (total - moved) / FPS / PACE < 3.0
    assert game.steps > 15 * SECOND, "the game itself waits much longer"
