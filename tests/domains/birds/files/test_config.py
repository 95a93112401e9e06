"""Configurations: read in every encoding, drawn by the published rules, and refused with the place of the mistake."""

import re

import pytest

from openfield.domains.birds.files.config import read_config, read_meta
from openfield.domains.birds.files.generation import (
    draw_scripts,
    write_config,
)
from openfield.errors import InvalidInput
from support.birds.configurations import CONFIG, encoded, meta


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": "often"}, ["novelty_detection_measurement", "step", "'often'", "whole number"]),
        ({"selection": "perhaps"}, ["<limit>", "'perhaps'", "true"]),
        ({"amount": "0"}, ["game_level_set", "amount", "'0'", "from 1 to 999,999"]),
        ({"cp_time": "5'/></checkpoint><checkpoint><limit type='time' value='5"}, ["<trial>", "2 <checkpoint>"]),
        ({"amount": "9-3"}, ["game_level_set", "amount", "'9-3'", "5-10"]),
        ({"share": "150"}, ["set_appearance_percentage", "'150'", "0 to 100"]),
        ({"notify": "loudly"}, ["<trial>", "notify_novelty", "'loudly'", "both"]),
        ({"cp_time": "soon"}, ["<limit>", "'time'", "'soon'", "whole number"]),
        ({"cp_time": "5'/><limit type='tiem' value='5"}, ["<limit>", "'type'", "'tiem'", "time | interaction."]),
        ({"selection": "true'/><limit type='x' value='5"}, ["'type'", "'x'", "attempt_per_level"]),
        ({"ordered": "yes"}, ["<test>", "ordered", "'yes'"]),
        ({"time": "99999999999"}, ["<limit>", "whole number up to"]),
        ({"count": "1000000000"}, ["<trial>", "'count'", "up to 10,000"]),
        ({"repeats": "20000"}, ["<trial>", "'repeats'", "up to 10,000"]),
    ],
)
def test_a_bad_value_names_element_attribute_and_what_is_allowed(tmp_path, changes, words):
    with pytest.raises(InvalidInput) as caught:
        read_meta(meta(tmp_path, **changes))
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-16-be with a mark"]
)
def test_a_list_of_trials_is_read_in_every_encoding(tmp_path, pool, encoding):
    scripts = draw_scripts(read_meta(meta(tmp_path, encoding)), pool)
    path = tmp_path / "config.xml"
    text = write_config(scripts).replace('encoding="utf-8"', 'encoding="utf-16"').replace('mode="', 'mode = "')
    path.write_bytes(encoded(text, encoding))
    assert read_config(path, pool) == scripts


def test_a_measurement_without_a_step_is_refused(tmp_path, pool):
    path = tmp_path / "config.xml"
    path.write_text(CONFIG.replace('step="2" ', ""))
    with pytest.raises(InvalidInput, match=r"_measurement>: 'step' is missing\. Allowed: a whole number"):
        read_config(path, pool)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("amount", "a whole number from 1 to 999,999, or a range such as 5-10"),
        ("novelty_level", "a level of novelty, such as 1"),
        ("novelty_type", "a type of levels, such as 010101"),
        ("type", "time | interaction"),
    ],
)
def test_a_missing_attribute_is_named_with_what_it_may_be(tmp_path, name, allowed):
    path = meta(tmp_path)
    path.write_text(re.sub(f" {name}='[^']*'", "", path.read_text(), count=1))
    with pytest.raises(InvalidInput, match=re.escape(f"'{name}' is missing. Allowed: {allowed}.")):
        read_meta(path)


def test_entities_are_refused(tmp_path, pool):
    path = tmp_path / "config.xml"
    path.write_text('<!DOCTYPE e [<!ENTITY a "b">]><evaluation>&a;</evaluation>')
    with pytest.raises(InvalidInput, match="entities are not allowed"):
        read_config(path, pool)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<evaluation><trials>", "is cut off; copy it again"),
        ("<evaluation><trials", "is cut off; copy it again"),
        ("<evaluation></trials>", "not well-formed: mismatched tag .line 1"),
        ("<config/>", "expected <evaluation>"),
        ("<evaluation><trials/></evaluation>", "no <trial>"),
        ("<evaluation><trials><trial/></trials></evaluation>", "at least one"),
        (
            "<evaluation><trials><trial><game_level_set mode='training'><game_levels level_path='../../etc/x'/>"
            "</game_level_set></trial></trials></evaluation>",
            "leads out",
        ),
        (
            "<evaluation><trials><trial><game_level_set mode='training'><game_levels level_path='no/such.xml'/>"
            "</game_level_set></trial></trials></evaluation>",
            "'no/such.xml' is not in",
        ),
    ],
)
def test_a_bad_list_is_refused_with_its_reason(tmp_path, pool, text, words):
    path = tmp_path / "config.xml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_config(path, pool)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ("level_path='no.xml'", "config.xml: <game_levels>: 'level_path': Level path 'no.xml' is not in"),
        ("novelty_level='9' type='1'", "<game_levels>: 'novelty_level' and 'type': .* Novelty levels: 0, 1, 2, 3"),
        ("novelty_level='1' type='5'", "<game_levels>: 'novelty_level' and 'type': .* Types of this level: 1, 6, 7, 8"),
        ("novelty_level='0' type='1' start='-1' end='2'", "<game_levels>: 'start' cannot be '-1'. Allowed: an index"),
        ("novelty_level='0' type='1' start='2' end='1'", "<game_levels>: 'end' cannot be '1'. Allowed: an index"),
    ],
)
def test_levels_that_are_not_there_are_named_with_their_place(tmp_path, pool, levels, words):
    path = tmp_path / "config.xml"
    path.write_text(
        f"<evaluation><trials><trial><game_level_set mode='training'><game_levels {levels}/>"
        "</game_level_set></trial></trials></evaluation>"
    )
    with pytest.raises(InvalidInput, match=words):
        read_config(path, pool)


def test_so_are_those_of_a_description(tmp_path, pool):
    path = meta(tmp_path)
    path.write_text(path.read_text().replace("novelty_level='1'", "novelty_level='9'"))
    with pytest.raises(InvalidInput, match=r"configMeta.xml: <game_level_set>: 'novelty_level' and 'novelty_type'"):
        draw_scripts(read_meta(path), pool)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("measure_in_testing", "measure_in_test", "<novelty_detection_measurement>: unknown attribute"),
        ("<training>", "<trainning>", "<trial>: unknown element 'trainning'. Did you mean 'training'?"),
        ("novelty_type", "noveltytype", "<game_level_set>: unknown attribute 'noveltytype'. Did you mean"),
        ("<limits>", "<Limits>", "<training>: unknown element 'Limits'. Did you mean 'limits'?"),
        ("ordered=", "order=", "<test>: unknown attribute 'order'. Did you mean 'ordered'?"),
        ("set_appearance_percentage='50'", "set_apperance_percent='50'", "Did you mean 'set_appearance_percentage'?"),
    ],
)
def test_a_misspelt_name_in_a_description_is_an_error_with_a_suggestion(tmp_path, old, new, words):
    path = meta(tmp_path)
    path.write_text(path.read_text().replace(old, new).replace(f"</{old[1:]}", f"</{new[1:]}"))
    with pytest.raises(InvalidInput) as caught:
        read_meta(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("attempt_limit_per_level", "atempt_limit_per_level"),
        ("game_levels", "game_level"),
        ("level_path", "levelpath"),
        ("notify_novelty", "notify_novelties"),
        ("<trials>", "<trails>"),
    ],
)
def test_a_misspelt_name_in_a_list_is_an_error_with_a_suggestion(tmp_path, pool, old, new):
    path = tmp_path / "config.xml"
    path.write_text(CONFIG.replace(old, new).replace(f"</{old[1:]}", f"</{new[1:]}"))
    with pytest.raises(InvalidInput, match=f"Did you mean '{old.strip('<>')}'"):
        read_config(path, pool)


def test_a_name_of_another_release_is_ignored_and_said(tmp_path, pool):
    path = tmp_path / "config.xml"
    path.write_text(CONFIG.replace("<trial id", "<trial budget='7' id"))
    with pytest.warns(UserWarning, match="<trial>: the attribute 'budget' is not known and is ignored. Known: id"):
        read_config(path, pool)


LIMITS = "<limits><limit type='time' value='9'/><limit type='interaction' value='8'/></limits>"


@pytest.mark.parametrize(
    "limits",
    [
        LIMITS,
        "<limits time='9' interaction='8'/>",
        "<limit type='time'>9</limit><limit type='interaction' interaction='8'/>",
    ],
)
@pytest.mark.parametrize("place", ["<checkpoint>", "<training>", "<test ordered='true'>", "one set"])
def test_limits_are_read_wherever_the_description_allows_them(tmp_path, place, limits):
    path, one = meta(tmp_path, cp_count=0), "<game_level_set novelty_level='1' novelty_type='1' amount='2'"
    text = re.sub(r"<limits>.*?</limits>|<limit [^>]*/>", "", path.read_text(), flags=re.S)
    if place == "one set":
        text = text.replace(f"{one} set_appearance_percentage='50'/>", f"{one}>{limits}</game_level_set>")
    else:
        text = text.replace(place, f"{place}{limits}")
    path.write_text(text)
    (trial,) = read_meta(path).trials
    found = {
        "<checkpoint>": (trial.script.checkpoint_seconds, trial.script.checkpoint_interactions),
        "<training>": (trial.script.training.seconds, trial.script.training.interactions),
    }.get(place, (trial.tests[1].limits.seconds, trial.tests[1].limits.interactions))
    assert found == (9, 8)


def test_a_set_states_its_own_limits_before_those_of_all_test_sets(tmp_path):
    path = meta(tmp_path)
    common = "<limits time='1' attempt_per_level='5' set_appearance_percentage='20' allow_level_selection='true'/>"
    path.write_text(path.read_text().replace("<test ordered='true'>", f"<test ordered='true'>{common}"))
    first, second = read_meta(path).trials[0].tests
    assert (first.limits.seconds, first.limits.attempts, first.percentage) == (9, 7, 100)
    assert (second.limits.seconds, second.limits.attempts, second.percentage) == (1, 5, 50)
    assert second.limits.selection


def test_a_limit_that_is_stated_twice_is_refused_unless_both_are_the_same(tmp_path):
    path = meta(tmp_path)
    path.write_text(path.read_text().replace("<checkpoint>", "<checkpoint time='0'><limits interaction='7'/>"))
    with pytest.raises(InvalidInput, match="<checkpoint>: its limit 'interaction' is 7 and 10"):
        read_meta(path)
