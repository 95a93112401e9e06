from __future__ import annotations

import msgspec
import pytest

import openfield as of
from openfield.agents.random import RandomAgent
from openfield.domain import spec_of
from openfield.errors import ReplayMismatch
from openfield.journal.replay import resume_rollout
from openfield.record import ENCODER
from openfield.testing.transcript import record_transcript, replay_in_world
from support.walks import WALKS


def test_a_replay_does_not_mind_which_string_says_test() -> None:
    """A trial that came through a pipe has phase names of its own, and msgspec writes those out."""
    trial = WALKS.trials(count=1, unchanged=0)[0]
    copied = msgspec.json.decode(msgspec.json.encode(trial), type=of.Trial)
    phases = tuple(of.Phase("".join(phase.name), phase.episodes, phase.novelty) for phase in copied.phases)
    other = msgspec.structs.replace(copied, phases=phases)
    transcript = record_transcript(WALKS, other, RandomAgent(spec_of(WALKS, other), 0))
    watched, error = replay_in_world(WALKS, trial, transcript.steps)
    assert error is None
    assert len(watched.turns) + 1 == len(transcript.steps)
    assert any(ENCODER.encode(t) != bytes(s.turn) for t, s in zip(watched.turns, transcript.steps, strict=False))


def test_a_changed_turn_is_no_replay() -> None:
    trial = WALKS.trials(count=1, unchanged=0)[0]
    transcript = record_transcript(WALKS, trial, RandomAgent(spec_of(WALKS, trial), 0))
    other = msgspec.structs.replace(trial, seed=trial.seed + 1)
    with pytest.raises(ReplayMismatch, match="Turn 0 differs"):
        resume_rollout(WALKS.world(other), transcript.steps)
