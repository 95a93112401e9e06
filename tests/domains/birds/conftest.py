"""Fixtures of the tests of birds: the shipped levels, and a scene with one object of every kind."""

import pytest

from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.scene import see, zoomed_out
from support.birds.worlds import LEVEL


@pytest.fixture(scope="session")
def pool():
    return LevelPool()


@pytest.fixture(scope="module")
def scene():
    return see(Game(LEVEL), zoomed_out(LEVEL.camera))
