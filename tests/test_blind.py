"""Nothing that can be counted tells an agent when its world changes, or whether it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import openfield as of
from openfield.blind import gather_episodes
from openfield.cell import Cell
from openfield.domain import spec_of
from openfield.errors import InvalidInput
from openfield.registry import find_domain
from openfield.trial import Trial
from support.places import MAZE

OWN = [(MAZE, {}), ("birds", {}), ("doom", {"training": 0}), ("ond", {}), ("commai", {"novelty": "separators"})]
"""Domains, with what makes a small set of trials in which something changes."""


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
