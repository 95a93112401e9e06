"""The agents: as good as stated, calibrated as stated, and gaining from what they buy."""

from __future__ import annotations

import numpy as np
import pytest

import openfield as of
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.agents.builtin import AdaptingAgent, NearestAgent
from openfield.domains.ond.agents.change_detectors import CHANGE_DETECTORS, Rarity, calibrate
from openfield.domains.ond.agents.classifier import Classifier
from openfield.domains.ond.agents.detectors import DETECTORS
from openfield.errors import AgentCrashed
from openfield.metrics.openset import measures
from openfield.rollout import Rollout, drive


@pytest.fixture(scope="module")
def splits():
    """Three splits of the digits: training features and logits, test features, logits and labels."""
    found = []
    for trial in DOMAIN.trials(3):
        built = DOMAIN.world(trial)._built
        x, y = built.images.reshape(len(built.images), -1), built.labels - 1
        model = Classifier(64, 6, 1)
        model.fit(x, y)
        test = built.test.images.reshape(-1, 64)
        found.append((model.read(x), y, model.read(test), np.where(built.test.labels == 0, -1, built.test.labels - 1)))
    return found


def test_the_classifier_knows_the_known_digits(splits) -> None:
    accuracies = [measures.closed_accuracy(logits.argmax(axis=1), label) for _, _, (_, logits), label in splits]
    assert np.mean(accuracies) >= 0.97


@pytest.mark.parametrize(
    ("name", "bar"),
    {
        "knn": 0.93,
        "mahalanobis": 0.9,
        "msp": 0.85,
        "entropy": 0.85,
        "maxlogit": 0.8,
        "energy": 0.8,
        "openmax": 0.8,
    }.items(),
)
def test_detectors_tell_unknown_digits(splits, name: str, bar: float) -> None:
    found = []
    for known, y, test, label in splits:
        detector = DETECTORS[name]()
        detector.fit(*known, y)
        found.append(measures.auroc(detector.score(*test), label))
    assert np.mean(found) >= bar


@pytest.mark.parametrize("kind", CHANGE_DETECTORS)
def test_calibrated_streams_keep_their_false_alarm_rate(kind: str) -> None:
    rng = np.random.default_rng(5)
    alarms, found = [], []
    for repeat in range(40):
        held = rng.normal(size=200)
        rarity = Rarity(held)
        threshold = calibrate(kind, rarity(held), 200, 0.05, repeat, streams=100)
        for shift, hits in ((0.0, alarms), (-1.5, found)):
            for _ in range(5):
                stream = CHANGE_DETECTORS[kind]()
                samples = np.concatenate([rng.normal(size=100), rng.normal(shift, 1, 100)])  # a change comes half-way
                hits.append(max(stream.push(value) for value in rarity(samples).tolist()) > threshold)
    assert np.mean(alarms) <= 0.08  # 200 streams at 5 %: the bound is three standard errors above
    assert np.mean(found) >= 0.9


@pytest.fixture(scope="module")
def calm() -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """Sixteen splits of the digits: how rare an agent's held-out samples are, and two streams it never saw.

    Classifier and detector learn from 350 samples, thresholds from 150 others, and the streams are 2 x 240 known digits
    of the rest: nothing is used twice.
    """
    found = []
    for number, trial in enumerate(DOMAIN.trials(16, 3, "none", before=24, after=0)):
        built = DOMAIN.world(trial)._built
        agent = NearestAgent(DOMAIN.spec(trial), number)
        agent.learn({"images": built.images, "labels": built.labels, "metadata": {"known_classes": 6}})
        seen = agent._rarity(agent._detector.score(*agent._read(built.test.images)))
        found.append((agent._rarity(agent._rarity._sorted), np.split(seen, 2)))
    return found


@pytest.mark.parametrize("kind", CHANGE_DETECTORS)
def test_on_digits_the_false_alarm_rate_is_kept(calm, kind: str) -> None:
    alarms = []
    for number, (held, streams) in enumerate(calm):
        threshold = calibrate(kind, held, 240, 0.05, number)
        for stream in streams:
            watch = CHANGE_DETECTORS[kind]()
            alarms.append(max(watch.push(value) for value in stream.tolist()) > threshold)
    assert len(alarms) == 32
    assert sum(alarms) <= 5  # at 5 % more than five of 32 come in four cases of a thousand


@pytest.mark.parametrize("held", [20, 50])
@pytest.mark.parametrize("kind", CHANGE_DETECTORS)
def test_few_held_out_samples_keep_the_false_alarm_rate_too(kind: str, held: int) -> None:
    rng, alarms = np.random.default_rng(3), []
    for number in range(25):
        scores = rng.normal(size=held)
        rarity = Rarity(scores)
        threshold = calibrate(kind, rarity(scores), 100, 0.05, number, streams=100)
        for _ in range(6):
            watch = CHANGE_DETECTORS[kind]()
            alarms.append(max(watch.push(value) for value in rarity(rng.normal(size=100)).tolist()) > threshold)
    assert np.mean(alarms) <= 0.08


def novel_accuracy(agent, trial) -> float:
    world = DOMAIN.world(trial)
    drive(Rollout(world), agent(DOMAIN.spec(trial), 1))
    late = np.flatnonzero(world.test.novel)[20:]
    return float((world.ledger.ranks[late] == 0).mean())


def test_the_adapting_agent_gains_on_novel_samples() -> None:
    trials = DOMAIN.trials(3, 1)
    gains = [novel_accuracy(AdaptingAgent, trial) - novel_accuracy(NearestAgent, trial) for trial in trials]
    assert np.mean(gains) > 0.03


def test_bought_labels_of_unknown_classes_are_one_class_whatever_their_number() -> None:
    (trial,) = DOMAIN.trials(1, 1)
    said = []
    for number in (0, -1, -3):
        agent = AdaptingAgent(DOMAIN.spec(trial), 1)
        agent._ids, agent._features = ["a"], np.ones((1, 3))
        agent._remember([f"a,{number}"])
        said.append(agent.classify(np.zeros((1, 6)), np.full(1, 0.5)).argmax())
    assert said == [0, 0, 0]


def test_given_detection_is_believed() -> None:
    (trial,) = DOMAIN.trials(1, red_light=True)
    world = DOMAIN.world(trial)
    drive(Rollout(world), NearestAgent(DOMAIN.spec(trial), 1))
    assert (world.ledger.p_world[220:] == 1).all()


def test_agents_say_that_they_need_samples() -> None:
    (trial,) = DOMAIN.trials(1, training=0)
    with pytest.raises(AgentCrashed, match="learns from samples"):
        drive(Rollout(DOMAIN.world(trial)), NearestAgent(DOMAIN.spec(trial), 1))


def test_the_demo_pair_is_measured(tmp_path) -> None:
    result = of.run(["knn"], DOMAIN.trials(5, before=3, after=4), tmp_path / "r.sqlite", workers=0)
    numbers = result.summary().groups[0].estimates
    assert numbers["auroc"].mean > 0.9
    assert numbers["closed_accuracy"].mean > 0.95
