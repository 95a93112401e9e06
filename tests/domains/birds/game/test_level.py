"""Levels are read as people have them, and what cannot be read is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.birds.game.level import Camera, Level, LevelObject, parse_level, write_level
from openfield.errors import InvalidInput

PLAIN = """<?xml version="1.0" encoding="utf-16"?>
<!-- <Level width="9"> -->
<Level width ="2">
  <Camera x="0" y="-1" minWidth="25" maxWidth="30">
  <Score highScore="100">
  <Birds><Bird type="BirdRed"/><Bird type='BirdBlue' /></Birds>
  <Slingshot x="-12.0" y="-2.5">
  <GameObjects>
    <Block type="RectBig" material="wood" x="1.5" y="-3" rotation="90" />
    <TNT type="" x="2" y="-3" rotation=""/>
    <Pig type="BasicSmall" x="5" y="-3.29"/>
    <Platform type="Platform" x="3" y="0" scaleX="2" scaleY="0.5"/>
    <Novelty type="NovelAirTurbulence" material="" x="0" y="1" scaleX="7" scaleY="10" forceMagnitude="5"/>
  </GameObjects>
</Level>
"""
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_open_tags_wrong_declarations_and_odd_spaces_are_no_obstacle(encoding):
    level = parse_level(PLAIN.encode(encoding))
    assert (level.width, level.camera, level.sling) == (2, Camera(0, -1, 25, 30), (-12.0, -2.5))
    assert level.birds == ("BirdRed", "BirdBlue")
    assert [thing.kind for thing in level.objects] == ["Block", "TNT", "Pig", "Platform", "Novelty"]
    assert (level.objects[0].rotation, level.objects[1].rotation, level.objects[3].scale_x) == (90, 0, 2)
    assert level.objects[4].force == 5


WHOLE = (
    "<Level><Camera minWidth='20' maxWidth='30'/><Birds><Bird type='BirdRed'/></Birds><Slingshot x='0' y='0'/>"
    "<GameObjects><Pig type='BasicSmall' x='1' y='0'/><Platform x='1' y='-1' scaleX='2'/></GameObjects></Level>"
)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Level", "Stage", "no <Level>"),
        ("<Slingshot x='0' y='0'/>", "", "no <Slingshot>"),
        ("<Slingshot x='0'", "<Slingshot x='much'", "<Slingshot> has x='much'"),
        ("<Slingshot x='0'", "<Slingshot x='nan'", "must be a number"),
        ("<Slingshot x='0'", "<Slingshot", "<Slingshot> has no x='...'; it needs a place"),
        ("<Platform x='1' y='-1'", "<Platform x='1'", "<Platform> has no y='...'; it needs a place"),
        ("<Slingshot x='0'", "<Slingshot x='1e300'", "must be a number"),
        ("minWidth='20'", "minWidth='40'", "minWidth <= maxWidth"),
        ("<Level>", "<!DOCTYPE l [<!ENTITY a 'b'>]><Level>", "entities are not allowed"),
        ("Platform", "Platfrom", "Unknown element 'Platfrom'. Did you mean 'Platform'?"),
        ("<Bird type='BirdRed'/>", "", "no <Bird>"),
        ("<Pig type='BasicSmall' x='1' y='0'/>", "", "no <Pig>"),
        ("scaleX='2'", "scaleX='0'", "<Platform> has scaleX='0'; it must be a number up to 10000, and not 0"),
        ("</GameObjects></Level>", "<Block type='Re", "the file is cut off"),
        ("<Platform x='1' y", "<Platform x='1 y", "<Platform x='1 y='-1' scaleX='2'/ ... is not well-formed"),
    ],
)
def test_what_is_wrong_is_named(old, new, reason):
    parse_level(WHOLE.encode())
    with pytest.raises(InvalidInput, match=r"some\.xml") as caught:
        parse_level(WHOLE.replace(old, new).encode(), "some.xml")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("name", "widest", "kind", "profile"),
    [
        ("1_2_3_4.xml", 35, "Block", "phyq"),
        ("1_2_3_4.xml", 30, "Block", "sailon"),
        ("1_2_3_4.xml", 35, "Novelty", "sailon"),
        ("00001_0_1_010101_0_1.xml", 35, "Block", "sailon"),
    ],
)
def test_the_profile_follows_from_camera_novelty_and_name(name, widest, kind, profile):
    thing = LevelObject(kind=kind, type="Circle", x=0, y=0)
    assert Level(name=name, camera=Camera(widest=widest), objects=(thing,)).profile == profile


NUMBERS = st.floats(-50, 50).map(lambda number: float(f"{number:.4g}"))
THINGS = st.builds(
    LevelObject,
    kind=st.sampled_from(["Block", "Pig", "Novelty"]),
    type=st.sampled_from(["Circle", "A & B", 'say "x"']),
    x=NUMBERS,
    y=NUMBERS,
    rotation=st.integers(0, 359).map(float),
)


PIG = LevelObject(kind="Pig", type="BasicSmall", x=1.0, y=0.0)


@given(st.lists(THINGS, max_size=5).map(tuple), st.lists(st.just("BirdRed"), min_size=1, max_size=3).map(tuple))
def test_a_level_written_and_read_is_the_same(things, birds):
    plain = tuple(thing for thing in things if "&" not in thing.type and '"' not in thing.type)
    level = Level(objects=(*plain, PIG), birds=birds)
    assert parse_level(write_level(level).encode()) == level


NEEDED = '<Bird type="BirdRed"/><Pig type="BasicSmall" x="1" y="0"/>'


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ('<Block type="RectFat" material="wood" x="1" y="0"/>', "there are 5,000 objects; at most 400 are allowed"),
        ('<Bird type="BirdRed"/>', "there are 5,000 birds; at most 100 are allowed"),
    ],
)
def test_a_level_that_would_break_the_engine_is_refused(element, words):
    text = f'<Level width="2"><Slingshot x="-12" y="-2.5"/>{NEEDED}{element * 4999}</Level>'
    with pytest.raises(InvalidInput, match=f"Level heap.xml: {words}"):
        parse_level(text.encode(), "heap.xml")
