"""The agents gain from the labels they buy, and believe the red light."""

from __future__ import annotations

import numpy as np
import pytest

import openfield as of
from openfield.core import Turn
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import Buy, NextBatch
from openfield.domains.ond.agents.builtin import AdaptingAgent, NearestAgent
from openfield.errors import AgentCrashed
from openfield.rollout import Rollout, drive


def novel_accuracy(agent, trial) -> float:
    world = DOMAIN.world(trial)
    drive(Rollout(world), agent(DOMAIN.spec(trial), 1))
    late = np.flatnonzero(world.test.novel)[20:]
    return float((world.answers.ranks[late] == 0).mean())


def test_the_adapting_agent_gains_on_novel_samples() -> None:
    trials = DOMAIN.trials(3, 1, unchanged=0)
    gains = [novel_accuracy(AdaptingAgent, trial) - novel_accuracy(NearestAgent, trial) for trial in trials]
    assert np.mean(gains) > 0.03


def test_bought_labels_of_unknown_classes_are_one_class_whatever_their_number() -> None:
    (trial,) = DOMAIN.trials(1, 1, unchanged=0)
    said = []
    for number in (0, -1, -3):
        agent = AdaptingAgent(DOMAIN.spec(trial), 1)
        agent._ids, agent._features = ["a"], np.ones((1, 3))
        agent._remember([f"a,{number}"])
        said.append(agent.classify(np.zeros((1, 6)), np.full(1, 0.5)).argmax())
    assert said == [0, 0, 0]


def test_given_detection_is_believed() -> None:
    (trial,) = DOMAIN.trials(1, red_light=True, before=10, unchanged=0)
    world = DOMAIN.world(trial)
    drive(Rollout(world), NearestAgent(DOMAIN.spec(trial), 1))
    assert (world.answers.p_world[220:] == 1).all()


def test_agents_say_that_they_need_samples() -> None:
    (trial,) = DOMAIN.trials(1, training=0, unchanged=0)
    with pytest.raises(AgentCrashed, match="learns from samples"):
        drive(Rollout(DOMAIN.world(trial)), NearestAgent(DOMAIN.spec(trial), 1))


def test_the_demo_pair_is_measured(tmp_path) -> None:
    result = of.run(["knn"], DOMAIN.trials(5, before=3, after=4, unchanged=0), tmp_path / "r.sqlite", workers=0)
    numbers = result.summary().groups[0].estimates
    assert numbers["auroc"].mean > 0.9
    assert numbers["closed_accuracy"].mean > 0.95


def test_an_agent_that_is_told_no_classes_stops_asking() -> None:
    (trial,) = DOMAIN.trials(1, 1, unchanged=0)
    agent = AdaptingAgent(DOMAIN.spec(trial), 1)
    agent._ids, agent._features, agent._rarities = ["a"], np.ones((1, 3)), np.ones(1)
    agent._highest, agent._threshold = 1.0, 1.0
    asked, seen = [], {"round": 0, "answered": True}
    answer = None
    while isinstance(action := agent.after_batch(Turn(observation=seen, feedback=answer)).action, Buy):
        asked.append(action.type)
        answer = {"type": action.type, "lines": ["a,run,jump,sit,eat,sleep"]}
    assert asked == ["classification", "labels"]
    assert agent.after_batch(Turn(observation=seen)).action == NextBatch()
