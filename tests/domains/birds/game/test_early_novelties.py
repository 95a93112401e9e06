"""The twelve early novelties: what the registry says about each is true of the shipped levels of its type."""

import pytest

from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.early_novelties import load_registry, registry_key
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level, LevelObject, parse_level
from openfield.domains.birds.game.scene import see, zoomed_out
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.novelty import describe_changes, describe_folders
from openfield.domains.birds.settings import BirdsSettings
from openfield.errors import OpenfieldError

PIG = LevelObject(kind="Pig", type="BasicSmall", x=9.0, y=-3.29)


def opened(pool, key):
    level, type_ = key.split(".")
    return Game(pool.level(pool.names(level, type_)[0]))


def blocks(game, material, novel=None):
    return [
        body
        for body in game.bodies
        if body.kind == "block" and body.material == material and (novel is None or bool(body.novel) is novel)
    ]


def bounce_and_drag(body):
    return body.physical.fixtures[0].restitution, body.physical.linearDamping


def test_there_are_twelve_with_levels_of_their_own_and_normal_ones_beside(pool):
    assert list(load_registry()) == [
        *("1.6", "1.7", "1.8", "1.9", "1.10", "2.6", "2.7", "2.8", "2.9", "2.10", "3.6", "3.7")
    ]
    for key in ("0.2", *load_registry()):
        level, type_ = key.split(".")
        assert len(pool.names(level, type_)) == 20, key
        assert pool.level(pool.names(level, type_)[0]).profile == "sailon"


def test_new_blocks(pool):
    normal = opened(pool, "0.2")
    (wall,) = (body for body in blocks(normal, "wood") if body.type == "SquareHole")
    (brick,) = (body for body in blocks(normal, "ice") if body.type == "RectFat")
    for key, material, usual in (("1.6", "wood", wall), ("1.7", "wood", wall), ("1.8", "ice", brick)):
        (novel,) = blocks(opened(pool, key), material, novel=True)
        drag, life, points = {"1.6": (25, 1, 1), "1.7": (1, 1, 2), "1.8": (1, 3, 1)}[key]
        assert novel.physical.linearDamping == drag * usual.physical.linearDamping
        assert (novel.full, novel.points) == (life * usual.full, points * 500)
        assert (novel.look, novel.type) == ("novel", usual.type)
        assert all(body.look == "" and not body.changed for body in blocks(opened(pool, key), "wood", novel=False))


def test_a_bird_like_a_dark_pig_and_a_pig_of_a_new_colour(pool):
    game = opened(pool, "1.9")
    looks = {item.look: item.sprite for item in see(game, zoomed_out(game.level.camera)).items if item.rank == "bird"}
    assert looks == {"pig_dark": "novel_object_4_1_9"}
    game.shoot(1.0, 0.3)
    assert (game.flying.type, game.flying.look, game.flying.physical.mass) == ("BirdRed", "pig_dark", 1.0)
    game = opened(pool, "1.10")
    (pig,) = (body for body in game.bodies if body.kind == "pig")
    assert (pig.look, pig.type, pig.life) == ("novel", "BasicSmall", 0.5)


def test_changed_properties_of_known_things(pool):
    for key, expected in (("0.2", (0.3, 0.0)), ("2.6", (0.9, 0.0)), ("2.7", (0.3, 0.2))):
        game = opened(pool, key)
        game.shoot(1.0, 0.3)
        assert bounce_and_drag(game.flying) == pytest.approx(expected), key
    usual = {(body.type, body.place[0]): body for body in blocks(opened(pool, "0.2"), "wood")}
    for key, drag, life, points in (("2.8", 1, 3, 500), ("2.9", 1, 1, 1000), ("2.10", 25, 1, 500)):
        game = opened(pool, key)
        for body in blocks(game, "wood"):
            assert body.full == life * next(other.full for (type_, _), other in usual.items() if type_ == body.type)
            assert (body.physical.linearDamping, body.points, body.look) == (drag, points, "")
        assert not any(body.changed for body in blocks(game, "ice"))


def test_what_is_novel_is_named_for_the_record_and_in_hints(pool):
    for key, count in (("1.6", 1), ("2.6", 3), ("2.8", 4), ("1.9", 3), ("3.7", 0)):
        level = pool.level(pool.names(*key.split("."))[0])
        assert len(LevelInPlay(level, BirdsSettings(), 1).novel_ids[0]) == count, key
        assert describe_changes(level) == load_registry()[key].note
    assert describe_folders(["novelty_level_2/type6"]) == [
        "novelty level 2, type 6 (red birds bounce with 0.9 instead of 0.3)"
    ]


def test_the_key_is_read_from_the_path():
    assert registry_key("novelty_level_1/type10/Levels/00001.xml") == "1.10"
    assert registry_key("some/novelty_level_2/type6/Levels/a_0_1.xml") == "2.6"
    assert registry_key("1_2_3_4.xml") == ""


def test_names_in_no_registry_are_replaced_with_a_warning():
    things = (
        (LevelObject(kind="Block", type="RectFat", material="novel_material_9", x=0.0, y=-3.28), "wood"),
        (LevelObject(kind="Block", type="novel_object_9", material="ice", x=0.0, y=-3.3), "SquareSmall"),
        (LevelObject(kind="Pig", type="novel_object_9", x=0.0, y=-3.29), "BasicSmall"),
    )
    for thing, replacement in things:
        with pytest.warns(UserWarning, match=f"_9' is unknown; {replacement} replaces it"):
            assert len(Game(Level(birds=("BirdRed",), objects=(thing, PIG))).bodies) == 2
    with pytest.warns(UserWarning, match="'novel_object_9' is unknown; BirdRed replaces it"):
        game = Game(Level(birds=("novel_object_9",), objects=(PIG,)))
    game.shoot(1.0, 0.1)
    assert game.flying.physical.mass == 1.0


LEVEL = b"""<Level width="2"><Camera x="0" y="-1" minWidth="25" maxWidth="30"/><Birds><Bird type="odd_bird"/></Birds>
<Slingshot x="-12" y="-2.5"/><GameObjects><Block type="RectFat" material="glass" x="3" y="-3.28"/>
<Pig type="BasicSmall" x="9" y="-3.29"/></GameObjects></Level>"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "novelty_level_4" / "type77" / "Levels"
    place.mkdir(parents=True)
    (place / "1.xml").write_bytes(LEVEL)
    return tmp_path


def test_a_folder_of_levels_may_have_a_registry_of_its_own(folder):
    text = '["4.77"]\nnote="glass"\nobjects.glass={base="ice",life=0.5}\nobjects.odd_bird={base="BirdBlack",bounce=1.0}'
    (folder / "novelties.toml").write_text(text)
    pool = LevelPool(folder)
    game = Game(pool.level(pool.names(4, "77")[0]))
    (pane,) = (body for body in game.bodies if body.kind == "block")
    assert (pane.material, pane.full) == ("ice", 0.5 * 10 * 0.4)
    game.shoot(1.0, 0.2)
    assert (game.flying.type, bounce_and_drag(game.flying)[0]) == ("BirdBlack", 1.0)
    assert pool.rules == text.encode()
    assert parse_level(LEVEL).early.note == ""


BROKEN = (
    ("a = [", "is not TOML"),
    ('["1.6"]\nnotes="x"', "not a registry of"),
    ('["1.6"]\nnote="x"\nchanged.wood={life=0}', "not a registry of"),
    ('["1.6"]\nnote="x"\nchanged.wood={look="stoen"}', "stone"),
)


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_a_registry_that_cannot_be_read_is_named(folder, text, words):
    (folder / "novelties.toml").write_text(text)
    with pytest.raises(OpenfieldError, match=words):
        LevelPool(folder)
