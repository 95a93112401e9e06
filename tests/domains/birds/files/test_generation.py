"""Trials are drawn from a description by the published rules."""

import os

import pytest

from openfield.domains.birds import DOMAIN
from openfield.domains.birds.files.config import MetaSet, read_config, read_meta
from openfield.domains.birds.files.generation import (
    count_by_bucket,
    count_test_sets,
    draw_scripts,
    find_config,
    sort_levels,
    write_config,
)
from openfield.domains.birds.files.pool import LevelPool, is_novel
from openfield.domains.birds.files.templates import count_for
from openfield.errors import InvalidInput
from support.birds.configurations import VALUES, meta


def test_a_description_is_drawn_by_the_published_rules(tmp_path, pool):
    first, second = draw_scripts(read_meta(meta(tmp_path)), pool, seed=1)
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
    assert draw_scripts(described, pool, 1) == draw_scripts(described, pool, 1) != draw_scripts(described, pool, 2)


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
    assert count_test_sets(trial, trial.script.training.seconds) == count


@pytest.mark.parametrize(("notify", "informed"), [("false", False), ("true", True)])
def test_trials_tell_of_novelty_where_the_description_says_so(tmp_path, pool, notify, informed):
    scripts = draw_scripts(read_meta(meta(tmp_path, notify=notify)), pool)
    assert [script.informed for script in scripts] == [informed] * VALUES["count"]


def test_both_gives_an_uninformed_and_an_informed_trial_with_the_same_levels(tmp_path, pool):
    first, second, *_ = draw_scripts(read_meta(meta(tmp_path, notify="both")), pool)
    assert (first.informed, second.informed) == (False, True)
    assert first.training == second.training


def test_amounts_may_be_a_range_and_training_time_may_be_per_level(tmp_path, pool):
    described = read_meta(meta(tmp_path, amount="2-5", count=30))
    sizes = {len(script.training.levels) - 3 for script in draw_scripts(described, pool)}
    assert sizes == {2, 3, 4}
    (script, *_) = draw_scripts(described, pool, time_scope="level")
    assert script.training.seconds == 100 * len(script.training.levels)


def test_test_sets_may_be_shuffled(tmp_path, pool):
    described = read_meta(meta(tmp_path, ordered="false", count=10))
    orders = {tuple(len(levels.levels) for levels in script.tests) for script in draw_scripts(described, pool)}
    assert len(orders) > 1


def test_a_trial_that_is_never_to_be_played_is_refused(tmp_path, pool):
    with pytest.raises(InvalidInput, match="asks for no trial"):
        draw_scripts(read_meta(meta(tmp_path, repeats=0)), pool)


def test_the_largest_number_is_allowed(tmp_path):
    assert read_meta(meta(tmp_path, step=10**9)).trials[0].script.report_step == 10**9
    with pytest.raises(InvalidInput, match="a whole number up to 1,000,000,000"):
        read_meta(meta(tmp_path, step=10**9 + 1))


FILL = "openfield birds generate --pool DIR --count {}"


@pytest.mark.parametrize(
    ("level", "type_", "variations"),
    [
        ("0", "1", 5),
        ("1", "1", 5),
        ("0", "2", 21),
        ("3", "7", 21),
        ("0", "010203", 21),
        ("2", "010203", 21),
        ("2", "1", 0),
    ],
)
def test_a_pool_with_so_many_variations_has_levels_enough(level, type_, variations):
    assert count_for(level, type_, 21) == variations


def test_a_pool_too_small_for_the_test_sets_is_refused_with_the_command_that_fills_it(tmp_path, pool):
    path = meta(tmp_path, cp_count=0, cp_time=1, count=1)  # 100 sets of 4 levels, and 50 of 2
    with pytest.raises(InvalidInput, match=r"100 levels of novelty level 0, type 1 .* --pool DIR --count") as caught:
        draw_scripts(read_meta(path), pool)
    assert "test set 26 of 150 needs 4, 0 are left" in str(caught.value)
    assert str(caught.value).endswith("make 400 levels and name their folder with --levels: " + FILL.format(80))
    with pytest.raises(InvalidInput, match="too few for the test sets"):
        DOMAIN.trials(config=str(path), unchanged=0)


def test_type1_has_levels_for_ten_sets_of_ten(pool):
    assert [len(pool.names(level, "1")) for level in (0, 1)] == [100, 100]
    for name in (name for level in (0, 1) for name in pool.names(level, "1")):
        assert pool.level(name).birds


def test_training_time_for_each_level_gives_checkpoints_for_all_of_it(tmp_path, pool):
    path = meta(tmp_path, cp_count=0, cp_time=400, count=1)
    sets = [len(draw_scripts(read_meta(path), pool, time_scope=scope)[0].tests) for scope in ("set", "level")]
    assert sets == [2, 3], "ceil(100 / 400) = 1 of each; ceil(8 * 100 / 400) = 2, of which half is 1"


def test_more_trials_and_tests_than_anybody_plays_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="1,000,000,003 checkpoints with test sets; at most 10,000"):
        draw_scripts(read_meta(meta(tmp_path, time=10**9, cp_time=1)), LevelPool())
    path = meta(tmp_path, count=10_000)
    path.write_text(path.read_text().replace("<config_generation>", "<config_generation repeats='10000'>"))
    with pytest.raises(InvalidInput, match="100,000,000 trials; at most 10,000"):
        draw_scripts(read_meta(path), LevelPool())
    (tmp_path / "config.xml").write_text(
        write_config(draw_scripts(read_meta(meta(tmp_path)), LevelPool())).replace(
            'executions="1"', 'executions="9999"'
        )
    )
    os.utime(tmp_path / "configMeta.xml", ns=(0, 0))
    with pytest.raises(InvalidInput, match="19,998 trials, repetitions included"):
        DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)


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


def test_portions_go_to_the_buckets_there_are():
    part = MetaSet(novelty_level="1", novelty_type="1", amount=(10, 11), absence=0.3, no_difference=0.2)
    full = (["a"], ["b"], ["c"])
    assert count_by_bucket(10, part, full) == [5, 3, 2]
    assert count_by_bucket(10, part, (["a"], [], ["c"])) == [7, 0, 3]
    assert count_by_bucket(10, part, ([], ["b"], [])) == [0, 10, 0]
    assert count_by_bucket(10, part, ([], [], [])) == [0, 0, 0]
    over = MetaSet(novelty_level="1", novelty_type="1", amount=(10, 11), absence=0.9, no_difference=0.9)
    assert count_by_bucket(10, over, full) == [0, 5, 5]


def test_levels_are_sorted_by_what_their_names_say():
    names = ["x/1_0_1.xml", "x/1_1_0.xml", "x/1_1_1.xml", "x/7.xml"]
    assert sort_levels(names) == (["x/1_1_1.xml", "x/7.xml"], ["x/1_0_1.xml"], ["x/1_1_0.xml"])
