"""The shipped levels: all there, all standing, some solved again, and any number more where they came from."""

import math

import pytest

from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.files.templates import load_templates, make_pair, moved, write_pool
from openfield.domains.birds.game.game import SECOND, Game
from openfield.domains.birds.game.level import parse_level
from openfield.domains.birds.game.solver import solve
from openfield.domains.birds.novelty import CHANGES, change_level
from openfield.errors import InvalidInput


@pytest.fixture(scope="module")
def pool():
    return LevelPool()


def all_names(pool):
    return [
        (level, type_, name) for level in range(9) for type_ in pool.types(level) for name in pool.names(level, type_)
    ]


def test_there_are_forty_templates_normal_and_novel_and_what_the_samples_ask_for(pool):
    assert len(load_templates()) == 40
    assert set(pool.types(0)) == {*load_templates(), "1"}
    assert len(pool.names(0, "1")) >= 10 <= len(pool.names(1, "1"))
    for type_ in load_templates():
        assert len(pool.names(0, type_)) == len(pool.names(int(type_[2:4]), type_)) >= 4


def test_nothing_is_lost_and_nothing_moves_in_any_level(pool):
    for _, _, name in all_names(pool):
        assert moved(pool.level(name)) < 0.3, name


def test_towers_still_stand_after_six_seconds_of_steps(pool):
    for _, _, name in all_names(pool)[::9]:
        game = Game(pool.level(name))
        start = {body.id: body.place for body in game.bodies}
        for _ in range(6 * SECOND):
            game.engine_world.Step(1 / SECOND, 100, 100)
        assert max(math.dist(body.place, start[body.id]) for body in game.bodies) < 0.3, name


def test_novel_levels_are_their_normal_twins_changed(pool):
    for level, type_, name in all_names(pool):
        if level and type_ != "1":
            twin = pool.names(0, type_)[pool.names(level, type_).index(name)]
            changed = change_level(pool.level(twin), [list(CHANGES)[level - 1]])
            assert [thing.type for thing in pool.level(name).objects] == [thing.type for thing in changed.objects]


@pytest.mark.parametrize("type_", ["010101", "010303", "010604", "010805"])
def test_levels_can_be_solved(pool, type_):
    for level in (0, int(type_[2:4])):
        assert solve(pool.level(pool.names(level, type_)[0])), (level, type_)


def test_the_generator_gives_the_same_pair_for_a_number_and_others_for_others(tmp_path):
    first = make_pair("010101", 900)
    assert make_pair("010101", 900) == first != make_pair("010101", 901)
    files = list(write_pool(tmp_path, 1, seed=5, types=("010105",)))
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        "novelty_level_0/type010105/Levels/00001_0_5_010105_0_5.xml",
        "novelty_level_1/type010105/Levels/00001_0_5_010105_1_5.xml",
    ]
    assert parse_level(files[0].read_bytes()).birds == ("BirdRed",)


def test_a_missing_folder_or_type_is_named(tmp_path, pool):
    with pytest.raises(InvalidInput, match="no folder of levels"):
        LevelPool(tmp_path / "none")
    with pytest.raises(InvalidInput, match="no levels of novelty level 3, type 9"):
        pool.names(3, "9")
    with pytest.raises(InvalidInput, match=r"Level gone\.xml in .* cannot be read"):
        pool.content("gone.xml")
