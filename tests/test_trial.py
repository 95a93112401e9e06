from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openfield as of
from openfield.cell import Cell
from openfield.domain import spec_of
from openfield.errors import InvalidInput
from openfield.registry import find_domain
from openfield.trial import Limits, Phase, Trial, derive, file_digest, gather_episodes, with_limits
from support.places import MAZE
from support.worlds import tiny_trials

names = st.text("abcdefgh", min_size=1, max_size=6)
values = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names
)
trials = st.builds(
    Trial,
    domain=names,
    version=st.integers(1, 9),
    seed=st.integers(0, 2**63 - 1),
    phases=st.lists(
        st.builds(
            Phase, st.sampled_from(["training", "test"]), st.integers(0, 99), st.lists(names, max_size=2).map(tuple)
        ),
        max_size=4,
    ).map(tuple),
    settings=st.dictionaries(names, values | st.lists(values, max_size=3), max_size=4),
    red_light=st.booleans(),
    limits=st.builds(
        Limits, st.none() | st.floats(0.1, 99), st.none() | st.integers(1, 99), st.none() | st.floats(1, 99)
    ),
    after=st.none() | names,
    files=st.dictionaries(names, names, max_size=2),
)
TRIAL = Trial(domain="maze", version=1, seed=7, phases=(Phase("test", 3, ("swap",)),), settings={"b": 2, "a": [1.5]})
OWN = [(MAZE, {}), ("birds", {}), ("doom", {"training": 0}), ("ond", {}), ("commai", {"novelty": "separators"})]
"""Domains, with what makes a small set of trials in which something changes."""


@given(trials)
def test_a_trial_keeps_its_id_in_every_form(trial: Trial) -> None:
    turned = msgspec.structs.replace(trial, settings=dict(reversed(trial.settings.items())))
    copies = [
        pickle.loads(pickle.dumps(trial)),
        msgspec.json.decode(msgspec.json.encode(trial), type=Trial),
        msgspec.msgpack.decode(msgspec.msgpack.encode(trial), type=Trial),
        turned,
    ]
    assert {copy.id for copy in copies} == {trial.id}
    assert len(trial.id) == 12
    assert int(trial.id, 16) >= 0


def test_ids_are_the_same_in_another_process_whatever_its_hash_seed() -> None:
    code = (
        "from openfield.trial import *; print(Trial(domain='maze', version=1, seed=7, "
        "phases=(Phase('test', 3, ('swap',)),), settings={'a': [1.5], 'b': 2}).id, derive(7, 'episode', 3))"
    )
    for seed in ("0", "1"):
        output = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        assert output.decode().split() == [TRIAL.id, str(derive(7, "episode", 3))]


@pytest.mark.parametrize(
    "change",
    [
        {"domain": "moze"},
        {"version": 2},
        {"seed": 8},
        {"phases": (Phase("test", 4, ("swap",)),)},
        {"phases": (Phase("training", 3, ("swap",)),)},
        {"phases": (Phase("test", 3),)},
        {"settings": {"b": 2}},
        {"red_light": True},
        {"limits": Limits(reply_seconds=1.0)},
        {"after": "0123456789ab"},
        {"files": {"level.xml": file_digest(b"<level/>")}},
    ],
)
def test_everything_in_a_trial_counts(change: dict[str, Any]) -> None:
    assert msgspec.structs.replace(TRIAL, **change).id != TRIAL.id


def test_other_limits_keep_what_comes_after_what() -> None:
    first = Trial(domain="d", version=1, seed=1, phases=())
    trials = [first, Trial(domain="d", version=1, seed=2, phases=(), after=first.id)]
    before, after = with_limits(trials, lambda limits: msgspec.structs.replace(limits, reply_seconds=1.0))
    assert before.id != first.id
    assert after.after == before.id
    assert (before.limits.reply_seconds, after.limits.reply_seconds) == (1.0, 1.0)


def test_the_novelty_of_a_trial_is_that_of_its_first_changed_phase() -> None:
    assert TRIAL.novelty == ("swap",)
    phases = Phase("training", 1), Phase("test", 1, ("a", "b")), Phase("test", 1, ("c",))
    assert msgspec.structs.replace(TRIAL, phases=phases).novelty == ("a", "b")
    assert msgspec.structs.replace(TRIAL, phases=phases[:1]).novelty == ()


@given(st.integers(0, 2**64), st.lists(names | st.integers(0, 99), max_size=4))
def test_seeds_are_derived_stably_and_fit_every_generator(seed: int, path: list[Any]) -> None:
    child = derive(seed, *path)
    assert child == derive(seed, *path)
    assert 0 <= child < 2**63
    assert child != derive(seed + 1, *path)
    assert child != derive(seed, *path, 0)


def test_limits_are_read_strictly() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"reply_second": 1.0}, Limits)


def test_a_trial_that_is_read_back_keeps_its_id() -> None:
    """Whole seconds were written as such and read back as others: such a run could not be resumed."""
    (trial,) = tiny_trials(1, Limits(reply_seconds=2, trial_seconds=900))
    assert msgspec.json.decode(msgspec.json.encode(trial), type=Trial).id == trial.id


def make(domain: str, count: int = 5, **options: Any) -> list[Trial]:
    return find_domain(domain).trials(count, **options)


def onset(trial: Trial) -> int:
    """Return how much of the test precedes the change."""
    tests = [phase for phase in trial.phases if phase.name == "test"]
    first = next(number for number, phase in enumerate(tests) if phase.novelty)
    return sum(phase.steps or phase.episodes for phase in tests[:first])


@pytest.mark.parametrize(("domain", "options"), OWN)
def test_five_trials_change_at_drawn_places_and_two_twins_do_not(domain: str, options: dict[str, Any]) -> None:
    trials = make(domain, **options)
    changed = [trial for trial in trials if trial.is_changed]
    unchanged = [trial for trial in trials if not trial.is_changed]
    length = trials[0].test_length
    assert (len(changed), len(unchanged)) == (5, 2)
    assert {trial.test_length for trial in trials} == {length}
    assert {trial.window for trial in trials} == {(-(-length // 4), 3 * length // 4)}
    assert all(-(-length // 4) <= onset(trial) <= 3 * length // 4 for trial in changed)
    assert len({onset(trial) for trial in make(domain, 20, **options) if trial.is_changed}) > 3
    assert {trial.seed for trial in unchanged} < {trial.seed for trial in changed}


@pytest.mark.parametrize(("domain", "options"), OWN)
def test_what_an_agent_may_know_is_the_same_in_all_trials(domain: str, options: dict[str, Any]) -> None:
    trials = make(domain, **options)
    assert len({repr(spec_of(find_domain(domain), trial)) for trial in trials}) == 1
    assert len({repr((t.novelty, t.settings, t.limits, t.red_light, t.window, t.scenario)) for t in trials}) == 1
    assert not any(str(trial.seed) in trial.id for trial in trials)


def test_every_place_of_the_window_is_drawn_both_ends_included() -> None:
    drawn = Counter(onset(t) for t in make(MAZE, 400, onset="3-6", unchanged=0))
    assert sorted(drawn) == [3, 4, 5, 6]
    assert min(drawn.values()) > 60


def test_the_order_of_a_set_does_not_tell_the_unchanged() -> None:
    places = [[t.is_changed for t in make(MAZE, 5, seed=seed)] for seed in range(40)]
    assert all({False, True} <= {row[at] for row in places} for at in range(7))


@pytest.mark.parametrize(("unchanged", "expected"), [("", 4), (0, 0), ("3", 3), ("all", 10)])
def test_the_number_of_unchanged_trials_can_be_set(unchanged: str | int, expected: int) -> None:
    trials = make(MAZE, 10, unchanged=unchanged)
    assert sum(not trial.is_changed for trial in trials) == expected
    assert sum(trial.is_changed for trial in trials) == 10


@pytest.mark.parametrize(("options", "place"), [({"onset": 10}, 10), ({"onset": "0"}, 0), ({"before": 4}, 4)])
def test_the_onset_can_be_fixed(options: dict[str, Any], place: int) -> None:
    changed = [trial for trial in make(MAZE, 3, **options) if trial.is_changed]
    assert {onset(trial) for trial in changed} == {place}
    assert {trial.window for trial in changed} == {None}


def test_commai_fixes_its_onset_in_instances_as_before() -> None:
    (trial,) = make("commai", 1, novelty="separators", onset_instances=7, unchanged=0)
    assert [phase.episodes for phase in trial.phases] == [7, 0]


@pytest.mark.parametrize(
    ("domain", "options", "allowed"),
    [
        (MAZE, {"onset": "20-30"}, "0 to 24 of it may precede"),
        (MAZE, {"onset": "9-3"}, "a window such as 7-18"),
        (MAZE, {"onset": "soon"}, "Write a number"),
        (MAZE, {"unchanged": 6}, "0 to 5 unchanged twins"),
        (MAZE, {"unchanged": "some"}, "or `all`"),
        (MAZE, {"novelty": "none", "unchanged": 1}, "leave them out"),
    ],
)
def test_a_wrong_window_or_number_says_what_is_allowed(domain: str, options: dict[str, Any], allowed: str) -> None:
    with pytest.raises(InvalidInput, match=allowed):
        make(domain, **options)


def test_a_set_without_novelty_is_as_it_was() -> None:
    trials = make(MAZE, 5, novelty="none")
    assert len(trials) == 5
    assert {(trial.scenario, trial.window) for trial in trials} == {(None, None)}


def test_a_changed_trial_shows_what_its_twin_shows_until_the_change(maze: of.Domain[Any]) -> None:
    by_seed: dict[int, list[Trial]] = {}
    for trial in maze.trials(3, unchanged="all", training=1):
        by_seed.setdefault(trial.seed, []).append(trial)
    for twins in by_seed.values():
        changed, normal = sorted(twins, key=lambda trial: trial.is_changed, reverse=True)
        shown = [list(first_observations(maze, trial)) for trial in (changed, normal)]
        assert shown[0][: 1 + onset(changed)] == shown[1][: 1 + onset(changed)]
        assert len(shown[0]) == len(shown[1]) == 26


def first_observations(domain: of.Domain[Any], trial: Trial) -> Iterator[Any]:
    """Yield what each episode shows first to an agent that always moves up."""
    world = domain.world(trial)
    turn = world.reset()
    while True:
        if turn.first:
            yield turn.observation
        if turn.last is not None and world.over:
            return
        turn = world.step(of.Reply("up"))


def test_neighbouring_episodes_with_the_same_novelty_are_one_phase() -> None:
    phases = gather_episodes([(), (), ("a",), ("a",), ()])
    assert [(phase.episodes, phase.novelty) for phase in phases] == [(2, ()), (2, ("a",)), (1, ())]


def test_an_agent_cannot_tell_twins_by_its_own_seed() -> None:
    trials = make(MAZE, 5)
    assert len({trial.seed for trial in trials}) == 5
    assert len({Cell("mine", trial).seed for trial in trials}) == 7


def test_twins_of_ond_share_no_samples_that_would_tell_the_others() -> None:
    domain = find_domain("ond")
    trials = domain.trials(1, unchanged=1, training=30, round_size=5, before=2, after=2, onset=2)
    tests = [domain.world(trial).test for trial in trials]
    pictures = [{picture.tobytes() for picture in test.images} for test in tests]
    assert len(pictures[0] & pictures[1]) < 5
    assert tests[0].known == tests[1].known
