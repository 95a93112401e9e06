"""Change detectors keep the rate of false alarms they are calibrated for."""

from __future__ import annotations

import numpy as np
import pytest

from openfield.domains.ond import DOMAIN
from openfield.domains.ond.agents.builtin import NearestAgent
from openfield.domains.ond.agents.change_detectors import CHANGE_DETECTORS, Rarity, calibrate


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
                samples = np.concatenate([rng.normal(size=100), rng.normal(shift, 1, 100)])  # a change comes half-way
                hits.append(max(CHANGE_DETECTORS[kind](rarity(samples).tolist())) > threshold)
    assert np.mean(alarms) <= 0.08  # 200 streams at 5 %: the bound is three standard errors above
    assert np.mean(found) >= 0.9


@pytest.fixture(scope="module")
def calm() -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """Sixteen splits of the digits: how rare an agent's held-out samples are, and two streams it never saw.

    Classifier and detector learn from 350 samples, thresholds from 150 others, and the streams are 2 x 240 known digits
    of the rest: nothing is used twice.
    """
    found = []
    for number, trial in enumerate(DOMAIN.trials(16, 3, "none", before=24, after=0, unchanged=0)):
        built = DOMAIN.world(trial)._built
        agent = NearestAgent(DOMAIN.spec(trial), number)
        agent.learn({"images": built.images, "labels": built.labels, "metadata": {"known_classes": 6}})
        flat = built.test.images.reshape(len(built.test.images), -1)
        seen = agent._rarity(agent._score(*agent._model.read(flat)))
        found.append((agent._rarity(agent._rarity._sorted), np.split(seen, 2)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGE_DETECTORS)
def test_on_digits_the_false_alarm_rate_is_kept(calm, kind: str) -> None:
    alarms = []
    for number, (held, streams) in enumerate(calm):
        threshold = calibrate(kind, held, 240, 0.05, number)
        for stream in streams:
            alarms.append(max(CHANGE_DETECTORS[kind](stream.tolist())) > threshold)
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
            alarms.append(max(CHANGE_DETECTORS[kind](rarity(rng.normal(size=100)).tolist())) > threshold)
    assert np.mean(alarms) <= 0.08
