"""Configurations: read in every encoding, drawn by the published rules, and refused with the place of the mistake."""

import os
import random

import pytest

from openfield.domains.birds import DOMAIN
from openfield.domains.birds.files.config import MetaSet, read_config, read_meta
from openfield.domains.birds.files.generation import (
    count_test_sets,
    find_config,
    generate,
    portion,
    sort_levels,
    write_config,
)
from openfield.domains.birds.files.pool import LevelPool, is_novel, natural
from openfield.errors import InvalidInput

META = """<?xml version='1.0' encoding='utf-16'?>
<!-- trials -->
<config_generation>
  <novelty_detection_measurement step='{step}' measure_in_training='true' measure_in_testing='false'/>
  <trials>
    <trial count='{count}' repeats='{repeats}' notify_novelty='{notify}'>
      <checkpoint><limit type='time' value='{cp_time}'/><limit type='interaction' value='{cp_count}'/></checkpoint>
      <training>
        <limits>
          <limit type='time' value='{time}'/><limit type='interaction' value='{interaction}'/>
          <limit type='attempt_per_level' value='2'/><limit type='allow_level_selection' value='{selection}'/>
        </limits>
        <game_level_sets>
          <game_level_set novelty_level='0' novelty_type='1' amount='{amount}'/>
          <game_level_set novelty_level='1' novelty_type='1' amount='3'/>
        </game_level_sets>
      </training>
      <test ordered='{ordered}'><game_level_sets>
        <game_level_set novelty_level='0' novelty_type='1' amount='4' set_appearance_percentage='{share}'
          time='9' interaction='8' attempt_per_level='7' allow_level_selection='true'/>
        <game_level_set novelty_level='1' novelty_type='1' amount='2' set_appearance_percentage='50'/>
      </game_level_sets></test>
    </trial>
  </trials>
</config_generation>
"""
VALUES = {
    **{"step": 3, "count": 2, "repeats": 1, "notify": "false", "cp_time": 0, "cp_count": 10, "time": 100},
    **{"interaction": 25, "selection": "true", "amount": "5", "ordered": "true", "share": 100},
}


@pytest.fixture(scope="module")
def pool():
    return LevelPool()


def meta(tmp_path, encoding="utf-8", **changes):
    path = tmp_path / "configMeta.xml"
    path.write_bytes(encoded(META.format(**{**VALUES, **changes}), encoding))
    return path


def encoded(text, encoding):
    name, _, mark = encoding.partition(" ")
    return ("\ufeff" if mark else "").encode(name) + text.encode(name)


def test_a_description_is_drawn_by_the_published_rules(tmp_path, pool):
    first, second = generate(read_meta(meta(tmp_path)), pool, seed=1)
    assert [is_novel(name) for name in first.training.levels] == [False] * 5 + [True] * 3
    assert (first.training.seconds, first.training.interactions, first.training.attempts) == (100, 25, 2)
    assert first.training.selection
    assert first.training.levels != second.training.levels
    assert [len(levels.levels) for levels in first.tests] == [4, 4, 4, 2, 2], "ceil(25 / 10) = 3 and ceil(3 * 50 %) = 2"
    limits = first.tests[0]
    assert (limits.seconds, limits.interactions, limits.attempts, limits.selection) == (9, 8, 7, True)
    played = [name for levels in first.tests for name in levels.levels]
    assert len(played) == len(set(played)), "test levels are drawn without replacement"
    assert (first.report_step, first.report_in_training, first.report_in_testing) == (3, True, False)


def test_the_same_seed_draws_the_same_trials_and_another_does_not(tmp_path, pool):
    described = read_meta(meta(tmp_path))
    assert generate(described, pool, 1) == generate(described, pool, 1) != generate(described, pool, 2)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"cp_count": 0}, 1),
        ({"cp_time": 30, "cp_count": 10}, 4 + 3),
        ({"cp_time": 30, "cp_count": 0}, 4),
        ({"interaction": 0, "time": 0}, 1),
    ],
)
def test_how_many_test_sets_there_are(tmp_path, changes, count):
    trial = read_meta(meta(tmp_path, **changes)).trials[0]
    assert count_test_sets(trial, trial.limits.seconds) == count


@pytest.mark.parametrize(("notify", "informed"), [("false", False), ("true", True)])
def test_trials_tell_of_novelty_where_the_description_says_so(tmp_path, pool, notify, informed):
    scripts = generate(read_meta(meta(tmp_path, notify=notify)), pool)
    assert [script.informed for script in scripts] == [informed] * VALUES["count"]


def test_both_gives_an_uninformed_and_an_informed_trial_with_the_same_levels(tmp_path, pool):
    first, second, *_ = generate(read_meta(meta(tmp_path, notify="both")), pool)
    assert (first.informed, second.informed) == (False, True)
    assert first.training == second.training


def test_amounts_may_be_a_range_and_training_time_may_be_per_level(tmp_path, pool):
    described = read_meta(meta(tmp_path, amount="2-5", count=30))
    sizes = {len(script.training.levels) - 3 for script in generate(described, pool)}
    assert sizes == {2, 3, 4}
    (script, *_) = generate(described, pool, time_scope="level")
    assert script.training.seconds == 100 * len(script.training.levels)


def test_test_sets_may_be_shuffled(tmp_path, pool):
    described = read_meta(meta(tmp_path, ordered="false", count=10))
    orders = {tuple(len(levels.levels) for levels in script.tests) for script in generate(described, pool)}
    assert len(orders) > 1


def test_a_trial_that_is_never_to_be_played_is_refused(tmp_path, pool):
    with pytest.raises(InvalidInput, match="asks for no trial"):
        generate(read_meta(meta(tmp_path, repeats=0)), pool)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": "often"}, ["novelty_detection_measurement", "step", "'often'", "whole number"]),
        ({"selection": "perhaps"}, ["<limit>", "'perhaps'", "true"]),
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
    scripts = generate(read_meta(meta(tmp_path, encoding)), pool)
    path = tmp_path / "config.xml"
    text = write_config(scripts).replace('encoding="utf-8"', 'encoding="utf-16"').replace('mode="', 'mode = "')
    path.write_bytes(encoded(text, encoding))
    assert read_config(path, pool) == scripts


def test_entities_are_refused(tmp_path, pool):
    path = tmp_path / "config.xml"
    path.write_text('<!DOCTYPE e [<!ENTITY a "b">]><evaluation>&a;</evaluation>')
    with pytest.raises(InvalidInput, match="entities are not allowed"):
        read_config(path, pool)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<evaluation><trials>", "not well-formed"),
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
        ("novelty_level='1' type='7'", "<game_levels>: 'novelty_level' and 'type': .* Types of this level: 1, 010101"),
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
        generate(read_meta(path), pool)


@pytest.mark.parametrize("root", ["../Levels/", "..\\..\\Levels\\", "C:/x/../y/Levels/", "./"])
def test_paths_are_resolved_by_what_comes_after_the_folder_of_levels(pool, root):
    name = pool.names(0, "1")[0]
    assert pool.resolve(root + name) == name


def test_the_largest_number_is_allowed(tmp_path):
    assert read_meta(meta(tmp_path, step=10**9)).measurement.step == 10**9
    with pytest.raises(InvalidInput, match="a whole number up to 1,000,000,000"):
        read_meta(meta(tmp_path, step=10**9 + 1))


def test_test_sets_the_pool_is_too_small_for_are_said(tmp_path, pool):
    with pytest.warns(UserWarning, match="of 30 test sets of a trial have fewer levels than requested"):
        generate(read_meta(meta(tmp_path, cp_count=0, cp_time=5, count=1)), pool)


def test_training_time_for_each_level_gives_checkpoints_for_all_of_it(tmp_path, pool):
    path = meta(tmp_path, cp_count=0, cp_time=400, count=1)
    sets = [len(generate(read_meta(path), pool, time_scope=scope)[0].tests) for scope in ("set", "level")]
    assert sets == [2, 3], "ceil(100 / 400) = 1 of each; ceil(8 * 100 / 400) = 2, of which half is 1"


def test_a_level_that_cannot_be_read_is_named_before_anything_is_played(tmp_path):
    levels = tmp_path / "Levels"
    levels.mkdir()
    (levels / "bad.xml").write_text('<Level width="2"><Slingshot x="abc" y="1"/></Level>')
    (tmp_path / "config.xml").write_text(
        "<evaluation><trials><trial><game_level_set mode='training'><game_levels level_path='Levels/bad.xml'/>"
        "</game_level_set></trial></trials></evaluation>"
    )
    with pytest.raises(InvalidInput, match=r"bad\.xml.*abc"):
        DOMAIN.trials(config=str(tmp_path / "config.xml"))


def test_more_trials_and_tests_than_anybody_plays_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="1,000,000,003 checkpoints with test sets; at most 10,000"):
        generate(read_meta(meta(tmp_path, time=10**9, cp_time=1)), LevelPool())
    path = meta(tmp_path, count=10_000)
    path.write_text(path.read_text().replace("<config_generation>", "<config_generation repeats='10000'>"))
    with pytest.raises(InvalidInput, match="100,000,000 trials; at most 10,000"):
        generate(read_meta(path), LevelPool())
    (tmp_path / "config.xml").write_text(
        write_config(generate(read_meta(meta(tmp_path)), LevelPool())).replace('executions="1"', 'executions="9999"')
    )
    os.utime(tmp_path / "configMeta.xml", ns=(0, 0))
    with pytest.raises(InvalidInput, match="19,998 trials, repetitions included"):
        DOMAIN.trials(config=str(tmp_path / "config.xml"))


def test_a_run_is_gone_on_with_from_the_folder_it_was_started_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.xml").write_text(write_config(generate(read_meta(meta(tmp_path)), LevelPool())))
    trial = DOMAIN.trials(config="config.xml")[0]
    DOMAIN.world(trial).close()
    monkeypatch.chdir("/")
    with pytest.raises(InvalidInput, match=r"config.xml does not exist.*the folder in which the run was started"):
        DOMAIN.world(trial)


def test_a_description_newer_than_its_list_is_drawn_again(tmp_path, pool):
    path = meta(tmp_path)
    listed = find_config(tmp_path, pool, seed=1)
    assert listed == tmp_path / "config.xml"
    first = read_config(listed, pool)
    assert read_config(find_config(path, pool, seed=2), pool) == first, "the list is there already"
    os.utime(listed, ns=(0, 0))
    assert read_config(find_config(tmp_path, pool, seed=2), pool) != first
    second = read_config(listed, pool)
    os.utime(listed, ns=(0, 0))
    assert find_config(listed, pool, seed=3) == listed
    assert read_config(listed, pool) != second, "the list itself may be named"
    other = path.rename(tmp_path / "mine.xml")
    assert find_config(other, pool).name == "mine.config.xml", "another list is left alone"


def test_some_trials_of_a_configuration_can_be_chosen(tmp_path):
    path = meta(tmp_path, count=3, notify="both")
    (tmp_path / "list.txt").write_text("4\n1\n\n99\n")

    def chosen(**choice):
        return [trial.id for trial in DOMAIN.trials(config=str(path), **choice)]

    every = chosen()
    assert len(every) == 6
    assert chosen(trial="2") == every[2:3]
    assert chosen(trial="4-2") == every[2:5], "in whichever order"
    assert chosen(trial="4-77") == every[4:], "as far as there are trials"
    assert chosen(told="informed") == every[1::2]
    assert chosen(told="uninformed", trial="1-3") == every[2:3]
    assert chosen(trial_list=str(tmp_path / "list.txt")) == [every[4], every[1]]
    for choice, reason in (
        ({"trial": "first"}, "a number from 0 on"),
        ({"trial": "1", "told": "uninformed"}, "choose none of the 6 trials"),
        ({"trial_list": str(path)}, "where a trial number is expected"),
        ({"trial_list": "no/list.txt"}, "cannot be read"),
        ({"config": "", "trial": "1"}, "only from a configuration"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            DOMAIN.trials(**{"config": str(path), **choice})


def test_portions_go_to_the_buckets_there_are():
    part = MetaSet(novelty_level="1", novelty_type="1", amount=(10, 11), absence=0.3, no_difference=0.2)
    full = (["a"], ["b"], ["c"])
    assert portion(10, part, full) == [5, 3, 2]
    assert portion(10, part, (["a"], [], ["c"])) == [7, 0, 3]
    assert portion(10, part, ([], ["b"], [])) == [0, 10, 0]
    assert portion(10, part, ([], [], [])) == [0, 0, 0]
    over = MetaSet(novelty_level="1", novelty_type="1", amount=(10, 11), absence=0.9, no_difference=0.9)
    assert portion(10, over, full) == [0, 5, 5]


def test_levels_are_sorted_by_what_their_names_say():
    names = ["x/1_0_1.xml", "x/1_1_0.xml", "x/1_1_1.xml", "x/7.xml"]
    assert sort_levels(names) == (["x/1_1_1.xml", "x/7.xml"], ["x/1_0_1.xml"], ["x/1_1_0.xml"])


def test_names_are_ordered_as_people_count():
    names = [f"type{number}" for number in range(1, 13)]
    shuffled = random.Random(0).sample(names, len(names))
    assert sorted(shuffled, key=natural) == names


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
