"""Failing never pays: what an agent failed to play counts against it in every row."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from openfield.core import Belief
from openfield.journal.reader import CellRecord, StatedBeliefs
from openfield.metrics import BUILT_IN
from openfield.metrics.curricula.gradual import GRADUAL
from openfield.metrics.failures import apply_policy, has_failed
from openfield.metrics.metric import Metric, Number
from openfield.metrics.performance import measure_effects, pick_after
from openfield.metrics.summary import list_numbers, measure_trials, summarise
from openfield.trial import Phase
from support.records import make_cell, make_trial

SCRIPT = (Phase("training", 1), Phase("test", 2), Phase("test", 3, ("swap",)))


def stop(played: int, outcome: str = "agent_error", note: str = "it broke", **fields: Any) -> CellRecord:
    """Return a cell that would have been perfect, and ended after this many of its six episodes."""
    whole = make_cell([1.0], [1.0] * 2, [1.0] * 3, [0.0, 0.0, 0.0, 0.9, 0.9, 0.9])
    trial = replace(whole.trial, phases=SCRIPT, **fields)
    return replace(whole, trial=trial, outcome=outcome, note=note, episodes=whole.episodes[:played])


def fill(cell: CellRecord) -> CellRecord:
    (filled,) = apply_policy([cell], "count")
    return filled


def shown(cell: CellRecord) -> list[tuple[str, bool, float | None, bool, bool]]:
    return [(one.phase, one.novel, one.performance, one.detected, one.failed) for one in cell.episodes]


def test_missing_episodes_are_alarms_before_the_change_and_misses_after_it() -> None:
    assert shown(fill(stop(2)))[2:] == [
        ("test", False, 0.0, True, True),
        ("test", True, 0.0, False, True),
        ("test", True, 0.0, False, True),
        ("test", True, 0.0, False, True),
    ]


def test_in_an_unchanged_trial_every_missing_episode_is_an_alarm() -> None:
    calm = replace(stop(1), trial=replace(stop(1).trial, phases=(Phase("test", 3),), scenario=("swap",)), episodes=())
    assert [one.detected for one in fill(calm).episodes] == [True] * 3


@pytest.mark.parametrize(
    ("outcome", "note", "failed"),
    [
        ("agent_error", "", True),
        ("agent_timeout", "No answer in time.", True),
        ("truncated", "Cut off by a limit on the agent: episode_turns is 9.", True),
        ("truncated", "", True),  # its protocol let it leave
        ("done", "", False),
        ("world_error", "the world broke", False),
        ("harness_error", "we broke", False),
        ("cancelled", "", False),
    ],
)
def test_only_an_agent_fails(outcome: str, note: str, failed: bool) -> None:
    cell = stop(3, outcome, note)
    assert has_failed(cell) is failed
    assert (fill(cell) is not cell) is failed


def test_who_ends_a_test_early_does_not_stop_when_it_is_ahead() -> None:
    filled = fill(stop(4, "truncated", ""))
    assert [one.failed for one in filled.episodes] == [False] * 4 + [True] * 2
    whole = stop(6, "truncated", "")
    assert fill(whole) is whole
    for other in ({"phases": (Phase("training", 9),)}, {"imported": "results.json"}):
        cell = replace(stop(4, "truncated", ""), trial=replace(whole.trial, **other))
        assert fill(cell) is cell


def test_faults_of_ours_count_neither_way() -> None:
    for policy in ("count", "exclude"):
        assert not apply_policy([stop(3, "world_error")], policy)[0].is_scored


def test_the_episode_that_a_limit_cut_off_is_a_failed_one() -> None:
    filled = fill(stop(4, "truncated", "Cut off by a limit on the agent: trial_seconds is 3.0."))
    assert [one.failed for one in filled.episodes] == [False, False, False, True, True, True]
    assert filled.episodes[3].performance == 0.0


def test_where_steps_are_counted_the_rest_has_the_pace_of_what_was_played() -> None:
    episodes = tuple(replace(one, turns=50, phase="test", novel=False) for one in stop(2).episodes)
    phases = (Phase("test", steps=300), Phase("test", 0, ("swap",), 200))
    cell = replace(stop(2), trial=replace(stop(2).trial, phases=phases, window=(100, 400)), episodes=episodes)
    rest = fill(cell).episodes[2:]
    assert [one.novel for one in rest] == [False] * 4 + [True] * 4
    assert [one.detected for one in rest] == [True] * 4 + [False] * 4
    assert len(fill(replace(cell, episodes=())).episodes) == 20


def worst_of(number: Number, values: list[float]) -> float:
    return max(values) if number.better == "lower" else min(values)


@pytest.mark.parametrize("metric", BUILT_IN, ids=lambda metric: metric.name)
@pytest.mark.parametrize(
    "kind", ["any", "long", "lost", "tasks", "padded", "slow", "borders", "words", "samples", "changes"]
)
def test_quitting_never_pays_in_any_row(metric: Metric, kind: str) -> None:
    """An agent that does badly and goes on is at least as good as the same one that stops."""
    whole = bad_cells()[kind]
    going_on = metric.among([whole], "ada").take(whole)
    for played in range(len(whole.episodes)):
        stopped = replace(whole, outcome="agent_error", note="it broke", episodes=whole.episodes[:played])
        quitting = metric.among([whole, stopped], "ada").take(fill(stopped))
        for number in metric.numbers:
            ours, theirs = going_on.get(number.name), quitting.get(number.name)
            if number.better and ours is not None:
                assert theirs is not None, f"{number.name} is left out, so failing could improve its mean"
                assert worst_of(number, [ours, theirs]) == theirs, number.name


def test_without_a_correct_detection_there_is_no_delay_whatever_failed() -> None:
    metrics = [metric for metric in BUILT_IN if metric.name in ("detection", "passive", "programme")]
    failed = fill(stop(3))
    assert measure_trials([failed], metrics)["delay"], "a failed trial counts in the row where others detect"
    found = summarise([failed], metrics).groups[0].estimates
    assert (found["correct"].mean, found["cdt"].mean) == (0.0, 0.0)
    assert not {"delay", "m1", "passive_delay", "fall_delay"} & set(found)
    detected = summarise([fill(stop(5))], metrics).groups[0].estimates
    assert (detected["correct"].mean, detected["delay"].mean) == (1.0, 0.0)


def test_every_row_is_held_against_quitting() -> None:
    taken = [metric.among([cell], "ada").take(cell) for metric in BUILT_IN for cell in bad_cells().values()]
    defined = {name for found in taken for name, value in found.items() if value is not None}
    single = {number.name for number in list_numbers(BUILT_IN) if not number.pooled and number.better}
    assert single - defined == {"alarmed_unchanged", "nrp_given"}  # those of twins, and of the red light


def bad_cells() -> dict[str, CellRecord]:
    """Return cells of agents that do badly, one for each kind of record that a metric reads."""
    long = make_cell([1.0], [1.0] * 10, [0.0] * 12, [0.0] * 12 + [0.9] * 11)
    script = (Phase("training", 1), Phase("test", 10), Phase("test", 12, ("swap",)))
    return {
        "any": bad_cell(),
        "long": replace(long, trial=replace(long.trial, phases=script)),
        "lost": losing_cell(),
        "tasks": learning_cell(),
        "padded": padded_cell(),
        "slow": slow_cell(),
        "borders": retested_cell(),
        "words": describing_cell(),
        "samples": sorting_cell(),
        "changes": shifting_cell(),
    }


def bad_cell() -> CellRecord:
    """Return a cell of an agent that does worse and worse, cries wolf, and misses the change at first."""
    cell = make_cell([0.9], [0.8, 0.6], [0.3, 0.1, 0.0], [0.0, 0.0, 0.9, 0.1, 0.9, 0.9])
    return replace(cell, trial=replace(cell.trial, phases=SCRIPT))


def losing_cell() -> CellRecord:
    """Return a cell of an agent that wins an episode, and loses from the onset on."""
    cell = bad_cell()
    won = (replace(one, detail={"won": one.number == 1}) for one in cell.episodes)
    return replace(cell, episodes=tuple(won))


def shifting_cell() -> CellRecord:
    """Return a cell whose world changes five times, of an agent that follows some changes and cries wolf."""
    stages = [(), ("a",), (), ("a",), (), ("b",)]
    phases = tuple(Phase("test", 4, stage) for stage in stages)
    trial = make_trial(phases=phases, scenario=("a then none then a then none then b",), window=(4, 4))
    beliefs = [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    performances = [0.5] * 4 + [0.1, 0.1, 0.2, 0.1] + [0.1, 0.3, 0.3, 0.3] + [0.1] * 4 + [0.1] * 4 + [0.0] * 4
    cell = make_cell([], performances, [], [float(each) for each in beliefs], trial=trial)
    told = [stage for stage in stages for _ in range(4)]
    played = (
        replace(one, novel=bool(stage), strength=float(bool(stage)), change="+".join(stage))
        for one, stage in zip(cell.episodes, told, strict=True)
    )
    return replace(cell, episodes=tuple(played))


def learning_cell() -> CellRecord:
    """Return a cell of twelve instances, in which one task is learnt late, and comes back after another one."""
    tasks = "aaaaaaaabbaa"
    marks = ["+-" * 10, "--" * 10, "-+" * 10, *["++" * 10] * 5, "--" * 10, "--" * 10, "-+" * 10, "--" * 10]
    cell = make_cell([], [0.1] * 4, [0.1] * 8)
    details = [
        {"task": task, "marks": mark, "steps": 100, "solved": "-" not in mark, "interruptions": 90, "of": 3}
        for task, mark in zip(tasks, marks, strict=True)
    ]
    phases = (Phase("test", steps=400), Phase("test", 0, ("swap",), 800))
    played = (replace(one, detail=detail, turns=100) for one, detail in zip(cell.episodes, details, strict=True))
    return replace(cell, trial=replace(cell.trial, phases=phases, window=(400, 400)), episodes=tuple(played))


def padded_cell() -> CellRecord:
    """Return a cell whose agent replies ten times for each step of the world."""
    cell = learning_cell()
    return replace(cell, episodes=tuple(replace(one, turns=1_000) for one in cell.episodes))


def slow_cell() -> CellRecord:
    """Return a cell of an agent that needs 150 steps for each instance at first, 25 later, and always sounds alarm."""
    cell = make_cell([], [0.1] * 10, [0.1] * 32, [1.0] * 42)
    steps = [150] * 2 + [25] * 40
    played = (replace(one, detail={"steps": each}, turns=each) for one, each in zip(cell.episodes, steps, strict=True))
    phases = (Phase("test", steps=500), Phase("test", 0, ("swap",), 800))
    return replace(cell, trial=replace(cell.trial, phases=phases, window=(400, 600)), episodes=tuple(played))


def test_replies_without_an_action_are_no_steps_of_the_world() -> None:
    """A quitter that sends empty ones before would else have nothing left to play."""
    plain, padded = (
        fill(replace(cell, outcome="agent_error", note="it broke", episodes=cell.episodes[:2]))
        for cell in (learning_cell(), padded_cell())
    )
    assert [(one.phase, one.novel, one.failed) for one in plain.episodes] == [
        (one.phase, one.novel, one.failed) for one in padded.episodes
    ]
    assert sum(one.steps for one in plain.episodes) == plain.trial.test_length
    numbers = [metric.among([plain]).take(plain) for metric in BUILT_IN]
    assert numbers == [metric.among([padded]).take(padded) for metric in BUILT_IN]
    whole = learning_cell(), padded_cell()
    assert pick_after(whole[0]) == tuple(replace(one, turns=100) for one in pick_after(whole[1]))


def test_quitting_in_the_unchanged_twin_costs_the_effect_as_much() -> None:
    changed = learning_cell()
    twin = replace(
        changed,
        id="twin",
        trial=replace(changed.trial, phases=(Phase("test", steps=1_200),), scenario=("swap",)),
        episodes=tuple(replace(one, novel=False) for one in changed.episodes),
    )
    assert twin.trial.is_unchanged_twin
    assert measure_effects([changed, twin]) == [0.0]
    stopped = fill(replace(twin, outcome="agent_error", note="it broke", episodes=twin.episodes[:1]))
    assert measure_effects([changed, stopped]) == [-1.0]


def retested_cell() -> CellRecord:
    """Return a cell of a curriculum with a retest and no novelty, whose beliefs cross the threshold at odd places."""
    settings = {"tasks": ["micro1", "micro2"], "retest": True, "strict": True, "max_steps": 4_000_000}
    trial = make_trial(domain="commai", version=2, phases=(Phase("test"),), settings=settings | {"task_budget": 10**6})
    tasks, marks = "1111112211222", ["+-" * 10, *["++" * 10] * 5, "+-" * 10, "--" * 10, "+-" * 10, *["--" * 10] * 4]
    cell = make_cell([], [0.1] * len(tasks), trial=trial)
    told = {"steps": 300, "interruptions": 90, "of": 4}
    details = [
        told | {"task": f"micro{task}", "marks": mark, "solved": "-" not in mark, "at": int(task) + 2 * (number > 7)}
        for number, (task, mark) in enumerate(zip(tasks, marks, strict=True))
    ]
    played = (replace(one, detail=detail, turns=300) for one, detail in zip(cell.episodes, details, strict=True))
    beliefs = tuple((step, float(step % 2)) for step in (1, 2, 5, 6, 1801, 2001))
    return replace(cell, episodes=tuple(played), stated=StatedBeliefs(beliefs, None, 3900))


def test_a_failed_task_takes_all_steps_that_its_trial_or_its_domain_allows() -> None:
    cell, phases = learning_cell(), (Phase("test", 4), Phase("test", 0, ("swap",)))
    commai = replace(cell.trial, domain="commai", phases=phases, window=None, settings={"max_steps": 5000})
    trials = (cell.trial, commai, replace(commai, domain="unheard-of"))
    failed = [fill(replace(cell, trial=trial, outcome="agent_error", episodes=cell.episodes[:2])) for trial in trials]
    taken = [GRADUAL.take(one) for one in failed]
    assert [found["steps_to_solve"] for found in taken] == [1200.0, 5000.0, None]
    assert [found["interruptions"] for found in taken] == [100 * (180 + 1000) / 40, 100 * (180 + 4800) / 40, None]


def describing_cell() -> CellRecord:
    """Return a cell of an agent that is certain of a wrong level, and has wrong words."""
    phases = (Phase("test", 1), Phase("test", 2, ("201:easy",)))
    cell = make_cell([], [0.5], [0.5] * 2, [0.0, 0.9, 0.9], trial=make_trial(domain="doom-arena", phases=phases))
    wrong = {"level": [{"level_number": 2, "probability": 1.0}], "entity": "moon"}
    told = Belief(0.9, None, {"characterization": wrong})
    return replace(cell, episodes=(cell.episodes[0], *(replace(one, belief=told) for one in cell.episodes[1:])))


def sorting_cell() -> CellRecord:
    """Return a cell of two batches of known and two of novel samples, in clusters as bad as they can be."""
    phases = (Phase("test", 2), Phase("test", 2, ("new_classes",)))
    cell = make_cell([], [0.5] * 2, [0.0] * 2, [0.0, 0.0, 0.0, 0.9], trial=make_trial(domain="ond", phases=phases))
    known: dict[str, Any] = {"novel": [0] * 4, "label": [0, 1, 2, 3], "world": [0.0] * 4, "rank": [0, 1, 1, 1]}
    novel = {"novel": [1] * 4, "label": [-1] * 4, "world": [0.0] * 4, "rank": [1] * 4}
    novel |= {"class": [8, 8, 9, 9], "cluster": [0, 1, 0, 1]}
    said = {"named": [0, 2, 3, 1], "guess": [0, 2, 3, 1], "confidence": [0.2, 0.9, 0.9, 0.9]}
    details = [known | said, known | said, novel | said, novel | said | {"world": [0.0, 0.0, 0.0, 0.9]}]
    played = (replace(one, detail=detail) for one, detail in zip(cell.episodes, details, strict=True))
    return replace(cell, episodes=tuple(played))


def test_numbers_of_completed_trials_stand_beside() -> None:
    cells = [many(number, "agent_error" if number % 2 else "done") for number in range(10)]
    metrics = [metric for metric in BUILT_IN if metric.name in ("performance", "detection")]
    (group,) = summarise(cells, metrics).groups
    assert group.trials == 10
    assert group.estimates["after"].mean == pytest.approx(0.5)
    assert group.completed["after"].mean == pytest.approx(1.0)
    assert (group.estimates["after"].n, group.completed["after"].n) == (10, 5)
    (excluded,) = summarise(cells, metrics, policy="exclude").groups
    assert excluded.estimates["after"] == group.completed["after"]
    assert excluded.completed == {}
    assert summarise(cells, metrics, policy="exclude").policy == "exclude"


def many(number: int, outcome: str) -> CellRecord:
    cell = stop(6 if outcome == "done" else 3, outcome, "" if outcome == "done" else "it broke", seed=number)
    return replace(cell, id=f"cell{number}")


def test_a_metric_of_others_has_its_worst_number_in_a_failed_trial() -> None:
    numbers = (
        Number(name="high", title="", note=""),
        Number(name="low", title="", note="", better="lower"),
        Number(name="open", title="", note="", better="lower", bounds=(0.0, None)),
        Number(name="count", title="", note="", better="lower", kind="count", bounds=None, within="after"),
    )
    metric = Metric("mine", "", numbers, lambda cell: {"high": 0.7, "low": 0.2, "open": 3.0, "count": 1})
    assert metric.take(stop(6, "done", "")) == {"high": 0.7, "low": 0.2, "open": 3.0, "count": 1}
    assert metric.take(fill(stop(3))) == {"high": 0.0, "low": 1.0, "open": None, "count": 3}
    assert [number.name for number in list_numbers([metric])] == ["high", "low", "open", "count"]
