from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.core import Belief, Reply
from openfield.errors import (
    AgentDiffers,
    ReplayMismatch,
)
from openfield.journal.replay import resume_rollout
from openfield.record import ENCODER, EpisodeEnd
from openfield.rollout import Rollout, drive
from openfield.trial import Limits
from support.clock import Clock
from support.players import Learner, Redriven
from support.stories import Kept, past_of
from support.worlds import TINY, Scripted, act, end, endless, tiny_trials, two_episodes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_rehearsed_agent_may_note_other_things() -> None:
    kept = Kept()
    rollout = Rollout(endless(), recorder=kept.recorder())
    rollout.reply(Reply("left", note={"seconds": 1.5}))
    rollout.reply(Reply("right"))
    rollout.close()
    again = resume_rollout(endless(), past_of(kept), known=0)
    again.reply(Reply("left", note={"seconds": 0.1}))
    with pytest.raises(AgentDiffers):
        again.reply(Reply("left", note="other"))


def test_going_on_replays_and_then_plays() -> None:
    kept = Kept()
    rollout = Rollout(two_episodes(), recorder=kept.recorder())
    for n in range(3):
        rollout.reply(Reply(n))
    rollout.close()
    later, world = Kept(), two_episodes()
    rollout = resume_rollout(world, past_of(kept), recorder=later.recorder(4))
    assert (rollout.turns, rollout.turn) == (3, world.script[3])
    assert drive(rollout, lambda turn: Reply("new")) == "done"
    (episode,) = later.of(EpisodeEnd)
    assert (episode.number, episode.turns) == (1, 2)


def test_a_changed_world_is_noticed_and_the_turn_named() -> None:
    kept = Kept()
    rollout = Rollout(two_episodes(), recorder=kept.recorder())
    for n in range(3):
        rollout.reply(Reply(n))
    rollout.close()
    changed = two_episodes()
    changed.script[2] = end(99)
    with pytest.raises(ReplayMismatch, match="Turn 2 differs from the recorded one"):
        resume_rollout(changed, past_of(kept))


@pytest.mark.parametrize("answer", [Reply("other"), Reply(object()), "nonsense"])
def test_a_rehearsed_agent_must_answer_as_it_did(answer: Any) -> None:
    kept = Kept()
    rollout = Rollout(two_episodes(), recorder=kept.recorder())
    rollout.reply(Reply(0))
    rollout.reply(Reply(1))
    rollout.close()
    later = Kept()
    rollout = resume_rollout(two_episodes(), past_of(kept), recorder=later.recorder(3), known=0)
    assert (rollout.turns, rollout.turn.observation) == (0, 0)
    rollout.reply(Reply(0))
    with pytest.raises(AgentDiffers, match="Turn 1: the agent answers"):
        rollout.reply(answer)
    rollout.close("superseded", "why")
    (ended,) = later.entries
    assert (ended.outcome, ended.note) == ("superseded", "why")


@pytest.mark.parametrize("again", [Reply(0, Belief(1)), Reply(0, Belief(1.0)), Reply(0, Belief(np.float64(1)))])
@pytest.mark.parametrize("before", [Reply(0, Belief(1)), Reply(0, Belief(1.0))])
def test_a_rehearsed_reply_may_be_written_otherwise(before: Reply, again: Reply) -> None:
    kept = Kept()
    rollout = Rollout(two_episodes(), recorder=kept.recorder())
    rollout.reply(before)
    rollout.close()
    rollout = resume_rollout(two_episodes(), past_of(kept), known=0)
    rollout.reply(again)
    assert rollout.turns == 1


def test_a_replayed_turn_may_be_written_otherwise() -> None:
    """msgspec leaves out a default that is the same object, and writes it out if it is only equal."""
    phase, reward = "".join(["te", "st"]), float("0")
    given, equal = act(float("nan")), act(float("nan"), phase=phase, reward=reward)
    assert ENCODER.encode(given) != ENCODER.encode(equal)
    for one, other in ((given, equal), (equal, given)):
        kept = Kept()
        Rollout(Scripted([one]), recorder=kept.recorder()).close()
        assert resume_rollout(Scripted([other]), past_of(kept)).turns == 0


def test_timed_worlds_replay_with_the_recorded_times(clock: Clock) -> None:
    def make() -> Scripted:
        return Scripted([act(n) for n in range(5)], timed=True)

    kept = Kept()
    rollout = Rollout(make(), recorder=kept.recorder())
    for seconds in (1.0, 2.0, 3.0):
        clock.pass_seconds(seconds)
        rollout.reply(Reply("go"))
    rollout.close()
    world = make()
    resume_rollout(world, past_of(kept))
    assert [reply.took for reply in world.replies] == [step.took / 1e9 for step in past_of(kept)[1:]]
    assert [reply.took for reply in world.replies] == pytest.approx([1.0, 2.0, 3.0], abs=2e-6)


def test_time_used_before_counts_against_the_trial_limit(clock: Clock) -> None:
    kept = Kept()
    rollout = Rollout(endless(), Limits(trial_seconds=10.0), kept.recorder())
    clock.pass_seconds(8.0)
    rollout.reply(Reply(1))
    rollout.close()
    rollout = resume_rollout(endless(), past_of(kept), Limits(trial_seconds=10.0), Kept().recorder(2))
    clock.pass_seconds(3.0)
    rollout.reply(Reply(1))
    assert rollout.outcome == "truncated"


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.sampled_from([Learner, Redriven]), st.integers(0, 3))
def test_going_on_at_any_turn_gives_the_same_record(stop: int, kind: type[Redriven], seed: int) -> None:
    (trial,) = tiny_trials(seed=seed)
    whole = Kept()
    drive(Rollout(TINY.world(trial), recorder=whole.recorder()), kind(TINY.spec(trial), 5))
    kept, agent = Kept(), kind(TINY.spec(trial), 5)
    rollout = Rollout(TINY.world(trial), recorder=kept.recorder())
    for _ in range(min(stop, 56)):
        rollout.reply(agent(rollout.turn))
    rollout.close()
    past = past_of(kept)
    rollout = resume_rollout(TINY.world(trial), past, recorder=kept.recorder(len(past)), known=0)
    drive(rollout, kind(TINY.spec(trial), 5))
    rollout.close("done")
    assert [(s.reply, s.turn, s.truth) for s in kept.steps()] == [(s.reply, s.turn, s.truth) for s in whole.steps()]


def test_worlds_with_images_and_agents_with_long_vectors_are_replayed() -> None:
    image = np.arange(200)
    script = [act(image), act(image + 1), end(image + 2)]
    kept = Kept()
    rollout = Rollout(Scripted(script), recorder=kept.recorder())
    for _ in range(3):
        rollout.reply(Reply(image))
    rollout.close()
    assert [step.reply.action for step in past_of(kept)[1:] if step.reply] == [image.tolist()] * 3
    assert resume_rollout(Scripted(script), past_of(kept)).over
