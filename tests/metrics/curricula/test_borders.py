"""Beliefs against task borders, counted by hand, and in the report of a run whose beliefs would be false alarms."""

import msgspec
import pytest

import openfield as of
from openfield.core import Belief, Reply
from openfield.domains.commai import DOMAIN
from openfield.journal.reader import StatedBeliefs
from openfield.metrics.curricula.borders import list_crossings, measure_borders
from openfield.metrics.detection import measure_detection
from openfield.trial import Phase, Trial
from support.records import make_cell

TASKS = ("micro1", "micro2", "micro3")


def make_borders(*beliefs, tasks="112233", settings=(), **fields):
    """A cell of instances of 100 steps each, with beliefs (step, value)."""
    known = {"tasks": list(TASKS), "max_steps": 5000} | dict(settings)
    trial = Trial(
        **{"domain": "commai", "version": 2, "seed": 1, "phases": (Phase("test"),), "settings": known} | fields
    )
    cell = make_cell([], [0.5] * len(tasks), trial=trial)
    told = {"marks": "+-", "steps": 100, "solved": False, "interruptions": 0, "of": 3}
    episodes = tuple(
        msgspec.structs.replace(episode, turns=100, detail=told | {"task": f"micro{task}", "at": int(task)})
        for episode, task in zip(cell.episodes, tasks, strict=True)
    )
    stated = StatedBeliefs(tuple(beliefs), None, 100 * len(tasks))
    return msgspec.structs.replace(cell, episodes=episodes, stated=stated)


def numbers(cell):
    return tuple(measure_borders(cell).values())


def test_a_border_is_found_by_a_crossing_before_the_next_one():
    assert numbers(make_borders((210, 0.9), (300, 0.1), (440, 0.5))) == (1.0, (10 + 40) / 2, 0.0)
    assert numbers(make_borders((210, 0.9), (440, 0.9))) == (0.5, (10 + 200) / 2, 0.0)  # it never fell below
    assert numbers(make_borders()) == (0.0, 200.0, 0.0)


def test_a_crossing_before_a_border_or_after_the_first_is_another():
    cell = make_borders((200, 0.9), (201, 0.4), (202, 0.9), (203, 0.4), (250, 0.9))
    assert numbers(cell) == (0.5, (2 + 200) / 2, 1000 * 2 / 600)


def test_of_several_beliefs_in_a_step_the_last_counts():
    assert list_crossings(make_borders((10, 0.9), (10, 0.1), (11, 0.2), (12, 0.1), (12, 0.7))) == [12]


def test_without_single_steps_beliefs_stand_at_the_ends_of_instances():
    cell = make_borders(tasks="1122")
    said = [None, 0.2, 0.8, 0.9]
    episodes = [
        msgspec.structs.replace(episode, belief=None if value is None else Belief(value))
        for episode, value in zip(cell.episodes, said, strict=True)
    ]
    assert list_crossings(msgspec.structs.replace(cell, episodes=tuple(episodes), stated=None)) == [300]


@pytest.mark.parametrize(
    ("fields", "borders"),
    [
        ({}, True),
        ({"settings": {"scheduler": "random"}}, True),
        ({"settings": {"tasks": ["micro1"]}}, False),
        ({"phases": (Phase("test", 2), Phase("test", 0, ("alphabet:hard",)))}, False),
        ({"scenario": ("alphabet:hard",)}, False),
        ({"domain": "maze"}, False),
    ],
)
def test_only_a_curriculum_without_novelty_has_borders_and_then_no_alarms(fields, borders):
    cell = make_borders((210, 0.9), **fields)
    assert (measure_borders(cell)["borders_found"] is not None) is borders
    assert (measure_detection(cell)["alarmed"] is None) is (borders or "scenario" in fields)


class Wary:
    """Believes that its world has changed for the first three steps after every reward."""

    def __init__(self, spec, seed):
        self.left = 0

    def __call__(self, turn):
        self.left = 3 if turn.reward > 0 else self.left - 1
        return Reply(turn.observation, Belief(float(self.left > 0)))


def test_a_run_reports_borders_and_no_false_alarm(tmp_path):
    trials = of.trials("commai", 5, tasks="micro4,micro2", task_budget=500, max_steps=1000)
    result = of.run({"wary": Wary}, trials, tmp_path / "run.sqlite")
    (group,) = result.summary().groups
    assert not {"alarmed", "alarms", "alarmed_unchanged"} & group.estimates.keys()
    assert group.estimates["borders_found"].n == 5
    assert group.estimates["other_crossings"].mean > 0
    assert "false alarm" not in result.page(tmp_path / "page.html").read_text()
    alone = of.trials("commai", 5, tasks="micro4", max_steps=300)
    (group,) = of.run({"wary": Wary}, alone, tmp_path / "alone.sqlite").summary().groups
    assert "borders_found" not in group.estimates
    assert group.estimates["alarms"].mean > 0


def test_the_first_step_of_a_task_is_the_first_after_its_border(tmp_path):
    """The turn that ends a task shows the first symbol of the next one, and its reply is the next one's first step."""

    class Seer:
        def __init__(self, spec, seed):
            self.step = 0

        def __call__(self, turn):
            self.step += 1
            return Reply(turn.observation, Belief(float(self.step == 51)))

    (trial,) = of.trials("commai", 1, tasks="micro4,micro2", task_budget=100, max_steps=200)
    assert DOMAIN.curriculum(trial).task_steps == 100
    (cell,) = of.run({"seer": Seer}, trial, tmp_path / "run.sqlite").cells  # an echo solves micro4 in 50 steps
    assert measure_borders(cell) == {"borders_found": 1.0, "border_steps": 1.0, "other_crossings": 0.0}
