"""The shipped levels: all there, all standing, some solved again, and any number more where they came from."""

import math
import random

import pytest
from msgspec.structs import replace

from openfield.domains.birds.files.pool import LevelPool, describe_levels, is_novel, natural_key, scenario_of_title
from openfield.domains.birds.files.templates import load_templates, moved
from openfield.domains.birds.game.game import SECOND, Game, solve
from openfield.domains.birds.game.level import parse_level
from openfield.domains.birds.novelty import CHANGES, change_level
from openfield.errors import InvalidInput


def all_names(pool):
    return [
        (level, type_, name) for level in range(9) for type_ in pool.types(level) for name in pool.names(level, type_)
    ]


def test_there_are_forty_templates_normal_and_novel_and_what_the_samples_ask_for(pool):
    assert len(load_templates()) == 40
    assert set(pool.types(0)) == {*load_templates(), "1", "2"}
    assert len(pool.names(0, "1")) >= 10 <= len(pool.names(1, "1"))
    for type_ in load_templates():
        assert len(pool.names(0, type_)) == len(pool.names(int(type_[2:4]), type_)) >= 4


@pytest.mark.slow
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
        if level and type_ in load_templates():
            twin = pool.names(0, type_)[pool.names(level, type_).index(name)]
            changed = change_level(pool.level(twin), [list(CHANGES)[level - 1]])
            assert [thing.type for thing in pool.level(name).objects] == [thing.type for thing in changed.objects]


@pytest.mark.parametrize("type_", ["010101", "010303", "010604", "010805"])
def test_levels_can_be_solved(pool, type_):
    for level in (0, int(type_[2:4])):
        assert solve(pool.level(pool.names(level, type_)[0])), (level, type_)


def without_novelties(level):
    return replace(level, objects=tuple(thing for thing in level.objects if thing.kind != "Novelty"))


def test_no_level_is_won_or_lost_when_it_is_loaded(pool):
    for level, type_, name in all_names(pool)[::5]:
        assert Game(pool.level(name), "sailon").state == "playing", name
        if not level and type_ in load_templates():
            assert Game(without_novelties(pool.level(name)), "phyq").state == "playing", name


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "share"), [("normal", 0.95), ("novel", 0.95), ("phyq", 0.7)])
def test_a_full_power_shot_solves_most_levels(pool, kind, share):
    solved = []
    for type_ in list(load_templates())[::3]:  # bench/bench_birds_physics.py asks for all of them
        number = int(type_[2:4]) if kind == "novel" else 0
        level = pool.level(pool.names(number, type_)[1])
        solved.append(solve(without_novelties(level), "phyq") if kind == "phyq" else solve(level, "sailon"))
    assert sum(map(bool, solved)) >= share * len(solved)


def test_a_missing_folder_or_type_is_named(tmp_path, pool):
    with pytest.raises(InvalidInput, match="no folder of levels"):
        LevelPool(tmp_path / "none")
    with pytest.raises(InvalidInput, match="no levels of novelty level 3, type 9"):
        pool.names(3, "9")
    with pytest.raises(InvalidInput, match=r"Level gone\.xml in .* cannot be read"):
        pool.content("gone.xml")


@pytest.mark.parametrize("root", ["../Levels/", "..\\..\\Levels\\", "C:/x/../y/Levels/", "./"])
def test_paths_are_resolved_by_what_comes_after_the_folder_of_levels(pool, root):
    name = pool.names(0, "1")[0]
    assert pool.resolve(root + name) == name


def test_names_are_ordered_as_people_count():
    names = [f"type{number}" for number in range(1, 13)]
    shuffled = random.Random(0).sample(names, len(names))
    assert sorted(shuffled, key=natural_key) == names


@pytest.mark.parametrize(
    ("name", "novel"),
    [
        ("novelty_level_0/type1/Levels/00001.xml", False),
        ("novelty_level_3/type1/Levels/00001.xml", True),
        ("00001_0_1_010101_0_1.xml", False),
        ("00001_0_1_010301_3_1.xml", True),
        ("9.xml", False),
    ],
)
def test_a_level_says_whether_it_is_novel(name, novel):
    assert is_novel(name) is novel


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("BasicSmall", "BasicSmal", "BasicSmall"),
        ("BirdRed", "BirdRead", "BirdRed"),
        ('"RectFat"', '"RectFatt"', "RectFat"),
        ('"ice"', '"icee"', "ice"),
        ('"Fan"', '"Faan"', "Fan"),
    ],
)
def test_a_misspelt_object_of_a_level_is_refused_with_the_one_that_was_meant(tmp_path, pool, old, new, meant):
    name = pool.names(2, "010205")[0] if meant == "Fan" else pool.names(0, "010105")[0]
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_bytes(pool.content(name).replace(old.encode(), new.encode()))
    with pytest.raises(InvalidInput, match=f"Level {name}: Unknown .* Did you mean '{meant}'"):
        LevelPool(tmp_path).level(name)


def test_a_novelty_of_another_release_is_no_error(tmp_path, pool):
    name = pool.names(2, "010205")[0]
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_bytes(pool.content(name).replace(b'"Fan"', b'"Butterfly"'))
    assert any(placed.type == "Butterfly" for placed in LevelPool(tmp_path).level(name).objects)


def test_an_external_agent_is_said_to_be_left_out(pool):
    name = pool.names(0, "010105")[0]
    magician = b'<ExternalAgent type="Magician" x="1" y="1"/></GameObjects>'
    with pytest.warns(UserWarning, match="'Magician' is unknown; nothing replaces it"):
        Game(parse_level(pool.content(name).replace(b"</GameObjects>", magician), name))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("1_1", "single"),
        ("2_03", "sliding"),
        ("Rolling", "rolling"),
        ("Multiple forces", "multiple"),
        ("3_06", "structural analysis"),
        ("Adequate timing", "adequate timing"),
        ("4_1", "4_1"),
        ("", ""),
    ],
)
def test_a_scenario_has_one_name_whatever_a_table_calls_it(title, name):
    assert scenario_of_title(title) == name


def test_levels_of_phyq_and_novphy_tell_their_scenario():
    assert describe_levels(["2_1_6_1.xml", "novelty_level_0/type2/Levels/2_1_8_1.xml"]) == {"scenario": "rolling"}
    assert describe_levels(["2_1_6_1.xml", "2_3_2_1.xml"]) == {}
    assert describe_levels(["3_6_4_1.xml"]) == {}, "no scenario of ours"
    assert describe_levels(["00001_0_1_010203_2_3.xml"]) == {"family": 2, "scenario": "rolling"}
