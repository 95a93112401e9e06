from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openfield as of
from openfield.agents.detectors import (
    DRIFT,
    ObservationShift,
    ScoreDistribution,
    Seen,
    TransitionSurprise,
    cross_validate,
    encode_value,
    find_bound,
)
from openfield.errors import Cancelled, InvalidInput, UnknownName
from support.stories import press_ctrl_c_after, story

SHORT: dict[str, Any] = {"unchanged": 0, "training": 8, "before": 3, "after": 3}


def beliefs(cell: Any) -> list[float]:
    return [episode.belief.highest for episode in cell.episodes if episode.belief is not None]


def walk(rng: Any, push: float = 1.0, start: float = 0.0) -> Seen:
    """An episode in which the action moves a point."""
    actions = rng.choice([-1.0, 1.0], (30, 1))
    moved = np.cumsum(push * actions + 0.1 * rng.normal(size=(30, 1)), axis=0)
    return Seen(start + np.vstack([np.zeros((1, 1)), moved]), actions, float(moved[-1, 0]))


def test_the_model_of_transitions_is_surprised_by_other_moves_and_not_by_other_places() -> None:
    rng, detector = np.random.default_rng(0), TransitionSurprise()
    standard = cross_validate(detector, [walk(rng) for _ in range(20)])
    assert standard.judge(detector.score(walk(rng, -1.0))) > 4
    assert abs(standard.judge(detector.score(walk(rng)))) < 3


def test_statistics_of_observations_tell_other_places() -> None:
    rng, detector = np.random.default_rng(0), ObservationShift()
    standard = cross_validate(detector, [walk(rng) for _ in range(20)])
    assert standard.judge(detector.score(walk(rng, start=40.0))) > 3
    assert abs(standard.judge(detector.score(walk(rng)))) < 3


def test_training_episodes_are_scored_by_a_detector_that_has_not_seen_them() -> None:
    class Notes:
        def __init__(self) -> None:
            self.known: list[float] = []
            self.scored: list[float] = []

        def fit(self, episodes: Any) -> None:
            self.known = [each.total for each in episodes]

        def score(self, episode: Seen) -> float:
            assert episode.total not in self.known
            self.scored.append(episode.total)
            return episode.total

    notes, none = Notes(), np.zeros((0, 0))
    standard = cross_validate(notes, [Seen(none, none, float(number)) for number in range(45)])
    assert sorted(notes.scored) == list(range(45)) == sorted(notes.known)
    assert (standard.mean, standard.episodes) == (22.0, 45)


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_false_alarms_of_normal_scores_are_about_as_many_as_chosen(rate: float) -> None:
    """With a known mean the sum crosses its bound as often as Siegmund's formula says."""
    rng, bound, crossed, total = np.random.default_rng(1), find_bound(rate), 0, 0.0
    for score in rng.normal(size=40_000):
        total = max(0.0, total + score - DRIFT)
        if total > bound:
            crossed, total = crossed + 1, 0.0
    assert crossed / 40_000 == pytest.approx(rate, rel=0.2)


def test_few_training_episodes_make_no_more_false_alarms() -> None:
    rng, bound, crossed = np.random.default_rng(2), find_bound(0.01), 0
    for _ in range(400):
        training, total = rng.normal(size=8), 0.0
        standard = ScoreDistribution(float(training.mean()), float(training.std(ddof=1)), 8)
        for score in rng.normal(size=50):
            total = max(0.0, total + standard.judge(float(score)) - standard.drift)
            if total > bound:
                crossed, total = crossed + 1, 0.0
    assert crossed / (400 * 50) < 0.012


def test_values_become_rows_of_numbers() -> None:
    space = of.spaces.Fields(
        {"way": of.spaces.Choice(("a", "b")), "box": of.spaces.Box(0, 9, (2,)), "n": of.spaces.Discrete(3, start=1)}
    )
    assert encode_value(space, {"way": "b", "box": [4, 5], "n": 2}).tolist() == [0, 1, 4, 5, 0, 1, 0]
    assert encode_value(of.spaces.Tuple((of.spaces.Discrete(1000), of.spaces.Text("a", 2))), [7, "aa"]).tolist() == [7]


@pytest.mark.parametrize("detector", ["surprise", "returns", "observations"])
def test_an_agent_plays_as_before_and_states_a_belief(detector: str, path: Path, maze: of.Domain[Any]) -> None:
    trials = maze.trials(1, **SHORT)
    player = of.policy(lambda seen: int(seen["at"] @ seen["goal"]) % 4)
    result = of.run({"with": of.with_detector(player, detector), "alone": player}, trials, path)
    watched, alone = (next(cell for cell in result.cells if cell.agent == name) for name in ("with", "alone"))
    assert watched.outcome == "done"
    assert [each.turns for each in watched.episodes] == [each.turns for each in alone.episodes]
    assert len(beliefs(watched)) == len(watched.episodes)
    assert all(0 <= belief <= 1 for belief in beliefs(watched))
    assert beliefs(watched)[:8] == [0.0] * 8


def test_surprise_notices_that_moves_are_swapped(path: Path, maze: of.Domain[Any]) -> None:
    trials = maze.trials(2, novelty="swapped", unchanged=0, training=20, before=4, after=4)
    for cell in of.run(of.with_detector("random", "surprise"), trials, path).cells:
        assert max(beliefs(cell)[:24]) < 0.5 <= beliefs(cell)[-1]


def test_it_goes_on_as_if_nothing_had_happened(path: Path, maze: of.Domain[Any]) -> None:
    agents, trials = {"a": of.with_detector("random", "surprise")}, maze.trials(1, **SHORT)
    with pytest.raises(Cancelled):
        of.run(agents, trials, path, watch=press_ctrl_c_after(9))
    of.run(agents, trials, path)
    of.run(agents, trials, path.with_name("whole.sqlite"))
    assert story(path) == story(path.with_name("whole.sqlite"))


def test_too_little_training_is_named(path: Path, maze: of.Domain[Any]) -> None:
    (cell,) = of.run(of.with_detector("random", "returns"), maze.trials(1, **{**SHORT, "training": 2}), path).cells
    assert "A detector needs 3 training episodes, and saw 2. Make trials with more" in cell.note


def test_what_cannot_be_watched_is_refused_before_the_run(path: Path, maze: of.Domain[Any]) -> None:
    large = of.Spec(domain="maze", task="", actions=of.spaces.Discrete(2), observations=of.spaces.Box(0, 1, (101, 100)))
    for detector in ("surprise", "observations"):
        with pytest.raises(InvalidInput, match="too large for the detector"):
            of.with_detector("random", detector).check_spec(large)
    assert of.with_detector("random", "returns").check_spec(large).observations is None
    with pytest.raises(InvalidInput, match="does not declare its spaces"):
        of.with_detector("random", "surprise").check_spec(of.Spec(domain="maze", task=""))
    wrong = of.policy(type("Net", (), {"predict": len, "action_space": random})())
    with pytest.raises(InvalidInput, match="The policy cannot play maze"):
        of.run(of.with_detector(wrong, "returns"), maze.trials(1), path)


@pytest.mark.parametrize(
    ("detector", "options", "kind", "told"),
    [
        ("surprises", {}, UnknownName, "surprise"),
        (7, {}, InvalidInput, "a int has not"),
        ("returns", {"false_alarms": 0}, InvalidInput, "'false_alarms' is a number above 0"),
    ],
)
def test_wrong_arguments_are_one_line(detector: Any, options: Any, kind: Any, told: str) -> None:
    with pytest.raises(kind, match=told):
        of.with_detector("random", detector, **options)
