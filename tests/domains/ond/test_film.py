"""Pictures of batches: the samples, then the classes that the agent named; nothing that only the world knows."""

from __future__ import annotations

import numpy as np

from openfield.core import Reply
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import NextBatch, Scores
from openfield.domains.ond.film import PAPER, UNKNOWN
from openfield.rollout import Rollout

SMALL = {"training": 20, "round_size": 10, "before": 1, "after": 1, "unchanged": 0}


def test_a_film_shows_batches_and_what_they_are_called() -> None:
    (trial,) = DOMAIN.trials(1, 3, "classes", **SMALL)
    film = DOMAIN.film(trial)
    plain, rollout = Rollout(DOMAIN.world(trial)), Rollout(film.world)
    (training,) = film.pictures()
    assert rollout.reply(Reply()).ask == plain.reply(Reply()).ask
    (batch,) = film.pictures()
    assert film.world.look("picture").tobytes() == batch.tobytes()
    called_new = np.eye(DOMAIN.spec(trial).actions.shape[1])[[0] + [1] * 9]
    rollout.reply(Reply(Scores.of(called_new)))
    (named,) = film.pictures()
    assert {training.shape[2], batch.shape[2]} == {3}
    assert batch.shape == named.shape
    assert (batch != named).any()
    assert not (batch == UNKNOWN).all(axis=2).any()
    assert (named == UNKNOWN).all(axis=2).sum() > 100  # a frame around the first sample
    assert tuple(batch[0, 0]) == PAPER
    rollout.reply(Reply(NextBatch()))
    assert list(film.pictures()) == []
    assert film.world.truth.episode_over
    rollout.close()
    plain.close()
