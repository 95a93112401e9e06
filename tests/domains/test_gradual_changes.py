"""Every domain changes gradually, again and several times: its truth tells how much, and its worlds show it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import openfield as of
from openfield.agents.random import RandomAgent
from openfield.core import Ask, Reply, Truth, Turn
from openfield.domains.birds.novelty import NOVELTIES as BIRDS_NOVELTIES
from openfield.domains.birds.novelty import mark_changes
from openfield.domains.birds.settings import BirdsSettings
from openfield.domains.commai.environment.schedulers import IntrudedScheduler, SequentialScheduler
from openfield.domains.commai.environment.serializers import make_byte_table
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import make_task
from openfield.domains.commai.world import RewardDelay
from openfield.errors import OpenfieldError
from openfield.journal.reader import Run
from openfield.novelty import find_novelty
from openfield.registry import find_agent, find_domain
from openfield.trial import Trial
from support.places import MAZE

SHORT: dict[str, dict[str, Any]] = {
    MAZE: {"training": 1, "before": 3, "after": 5, "patience": 20},
    "birds": {"training": 1, "before": 2, "after": 4},
    "commai": {
        "tasks": ("micro7.2", "micro14"),
        "scheduler": "sequential",
        "required_consecutive_rewards": 1,
        "success_tolerance": 0.0,
        "failed_task_tolerance": 0.0,
        "max_steps": 9000,
    },
    "doom": {"training": 0, "episodes": 6, "limit": 12, "onset": "2-3"},
    "doom-arena": {"training": 0, "episodes": 6, "limit": 12, "onset": "2-3"},
    "gym:CartPole-v1": {"training": 1, "before": 3, "after": 5},
    "ond": {"training": 60, "before": 2, "after": 5, "round_size": 10},
}
GRADUAL = [
    (MAZE, "slip:hard over 3"),
    ("birds", "gravity=2 over 3"),
    ("birds", "launch=0.7 as sine(period=3)"),
    ("birds", "wind every 2"),
    ("commai", "alphabet:hard over 4"),
    ("commai", "new-task:hard over 900 turns"),
    ("commai", "feedback:hard every 2"),
    ("doom", "enemy_stride=8 over 3"),
    ("doom", "mirrored every 2"),
    ("doom-arena", "102 over 3"),
    ("gym:CartPole-v1", "gravity=19.6 over 4"),
    ("gym:CartPole-v1", "gravity=19.6 over 40 turns"),
    ("gym:CartPole-v1", "actions-permuted every 2"),
    ("gym:CartPole-v1", "observations-noisy:hard as walk(sigma=0.05)"),
    ("ond", "classes over 4"),
    ("ond", "rotation=60 as walk(sigma=20)"),
    ("ond", "blur every 2"),
]


def _mark(domain: str, *values: Any) -> Any:
    marks = [pytest.mark.engine] if domain.startswith("doom") else []
    return pytest.param(domain, *values, marks=marks, id=f"{domain.rpartition('/')[2]}-{values[0]}")


CASES = [_mark(*case) for case in GRADUAL]


def draw(domain: str, novelty: str, **options: Any) -> list[Trial]:
    settings = SHORT[domain]
    onset = {} if "onset" in settings or domain == "commai" else {"onset": "1-2"}
    return of.trials(domain, 2, novelty=novelty, **{**settings, **onset, "unchanged": 1, **options})


def play(trial: Trial) -> Iterator[tuple[Turn, Truth]]:
    domain = find_domain(trial.domain if trial.domain != "maze" else MAZE)
    world, spec = domain.world(trial), domain.spec(trial)
    agent = RandomAgent(spec, 0) if spec.actions is not None and trial.domain != "ond" else _answer
    turn = world.reset()
    while True:
        yield turn, world.truth
        if turn.last is not None and world.over:
            world.close()
            return
        turn = world.step(agent(turn) if turn.ask is Ask.ACT else Reply(None, of.Belief(0.0)))


def _answer(turn: Turn) -> Reply:
    if turn.observation.get("answered"):
        return Reply({"do": "next"})
    return Reply([[1 / 7] * 7] * len(turn.observation["ids"]), of.Belief(0.0))


@pytest.mark.parametrize(("domain", "novelty"), CASES)
def test_truth_tells_how_much_and_twins_never_change(domain: str, novelty: str) -> None:
    for trial in draw(domain, novelty):
        found = [(truth.novel, truth.strength, truth.change) for _, truth in play(trial) if truth.strength is not None]
        assert {novel == (strength > 0) == bool(change) for novel, strength, change in found} == {True}
        assert all(0.0 <= strength <= 1.0 for _, strength, _ in found)
        assert {change for _, _, change in found} == ({"", trial.novelty[0]} if trial.is_changed else {""})


@pytest.mark.parametrize(("domain", "novelty"), CASES)
def test_it_is_shown_after_the_onset_and_not_before(domain: str, novelty: str) -> None:
    changed = next(trial for trial in draw(domain, novelty) if trial.is_changed)
    plain = replace(
        changed,
        phases=tuple(replace(phase, novelty=()) for phase in changed.phases),
        scenario=(),
    )
    here, there = list(play(changed)), list(play(plain))
    onset = next(number for number, (_, truth) in enumerate(here) if truth.novel)
    shown = [[of.record.ENCODER.encode(turn) for turn, _ in each] for each in (here, there)]
    assert shown[0][:onset] == shown[1][:onset]
    assert shown[0] != shown[1]


@pytest.mark.parametrize(("domain", "novelty"), CASES)
def test_a_recorded_run_is_proven_and_agents_see_a_strength_only_if_it_is_granted(
    domain: str, novelty: str, path: Path
) -> None:
    trials = draw(domain, novelty, red_light="how much")
    agent = find_agent("msp" if domain == "ond" else "random", find_domain(domain))
    of.run({"it": agent}, trials, path)
    with Run(path) as run:
        assert run.verify() == []
        for cell in run.cells():
            assert cell.outcome == "done", cell.note
            steps = [
                step for step in run.steps(cell.id, cell.attempt) if step.turn is not None and step.truth is not None
            ]
            told = [(step.turn.red_light, step.truth.strength) for step in steps if step.truth.strength is not None]
            assert all(light is not None for light, _ in told)
            if domain != "commai":  # where the turn that ends an instance already shows the next one
                assert all(light == pytest.approx(strength) for light, strength in told)
    assert all(turn.red_light is None for turn, _ in play(draw(domain, novelty)[0]))


@pytest.mark.parametrize(
    ("domain", "novelty", "message"),
    [
        ("birds", "wind over 3", "'wind' changes no number gradually"),
        ("birds", "gravity=11", "Setting 'gravity' cannot be '11'"),
        (
            "birds",
            "mass=3 over 2",
            "Unknown setting of a novelty 'mass'. A novelty may change: friction, gravity, launch",
        ),
        ("birds", "gravity=2 over 3 turns", "worlds of birds change between episodes only"),
        ("commai", "reward-sign over 3", "'reward-sign' changes no number gradually"),
        ("doom", "fog over 3", "'fog:easy' changes no number gradually"),
        ("doom", "player_health=3 over 3", "Unknown setting of a novelty 'player_health'"),
        ("doom", "enemy_stride=8 as ornstein_uhlenbeck(theta=0.1, sigma=30)", "out of its range in episode"),
        ("gym:CartPole-v1", "actions-permuted over 3", "changes no number gradually"),
        ("gym:CartPole-v1", "time-limit over 5 turns", "changes time limit, which an episode keeps"),
        ("gym:CartPole-v1", "gravity=19.6 over 9", "takes 9 episodes, and the test has 7 at most"),
        ("gym:CartPole-v1", "gravity=19.6 over 3501 turns", "takes 3501 turns, and the test has 3500 at most"),
        ("commai", "alphabet:hard over 8000 turns", "takes 8000 turns, and the test has [67]... at most"),
        ("gym:CartPole-v1", "gravty=19.6 over 3", "Did you mean 'gravity'"),
        ("ond", "font over 3", "'font' changes no number gradually"),
        ("ond", "rotation=200 over 3", "Setting 'rotation' cannot be '200'"),
    ],
)
def test_what_cannot_be_is_one_line_before_the_first_turn(domain: str, novelty: str, message: str) -> None:
    with pytest.raises(OpenfieldError, match=message) as caught:
        draw(domain, novelty, **({"onset": "1-2"} if domain == "doom" else {}))
    assert "\n" not in str(caught.value)


def test_a_share_and_a_process_contradict_each_other_in_doom() -> None:
    with pytest.raises(OpenfieldError, match="both say which episodes are novel: leave out 'share'"):
        draw("doom", "mirrored every 2", share=0.5)


def test_an_alphabet_comes_letter_by_letter() -> None:
    tables = [make_byte_table(CommaiSettings(alphabet="foreign", alphabet_share=share / 4)) for share in range(5)]
    assert [len(table) for table in tables] == [0, 32, 62, 92, 124]
    assert all(small.items() <= large.items() for small, large in itertools.pairwise(tables))


@pytest.mark.parametrize("share", [0.5, 0.25, 0.1])
def test_an_intruder_takes_its_share_of_the_instances(share: float) -> None:
    usual, intruder = make_task("micro1"), make_task("micro4")
    scheduler = IntrudedScheduler(SequentialScheduler([usual] * 1000), intruder, share)
    rng = random.Random(0)
    taken = [scheduler.next_task(rng) is intruder for _ in range(400)]
    assert taken[0]
    assert sum(taken) == pytest.approx(400 * share, abs=1)
    scheduler.share = 0.0
    assert not any(scheduler.next_task(rng) is intruder for _ in range(40))


def test_a_delay_that_becomes_shorter_pays_what_is_owed() -> None:
    rewards = iter([1, 2, 3, 4, 5, 6])
    late = RewardDelay(lambda heard: ("x", next(rewards)))
    late.steps = 2
    assert [late(None)[1] for _ in range(3)] == [0, 0, 1]
    late.steps = 1
    assert late(None)[1] == 2 + 3
    late.steps = 0
    assert [late(None)[1] for _ in range(2)] == [4 + 5, 6]


def test_laws_of_nature_stand_behind_the_name_of_a_level() -> None:
    changed = find_novelty(BIRDS_NOVELTIES, "gravity=2.5").change(BirdsSettings())
    assert mark_changes(BirdsSettings(), changed) == "gravity=2.5"
    assert mark_changes(changed, changed) == ""
