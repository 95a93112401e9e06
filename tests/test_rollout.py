from __future__ import annotations

import contextlib
import enum
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openfield as of
from openfield.core import Ask, Belief, Reply, Truth, Turn
from openfield.errors import (
    AgentCrashed,
    AgentProtocol,
    AgentTimeout,
    Cancelled,
    OpenfieldError,
    WorldFault,
)
from openfield.journal.replay import recall, resume_rollout
from openfield.limit_guard import MAX_HESITATIONS
from openfield.record import AgentState, AttemptEnd, EpisodeEnd
from openfield.rollout import Rollout, drive
from openfield.trial import Limits
from support.clock import Clock
from support.players import Crasher
from support.stories import Kept, close_and_read, past_of
from support.worlds import FAR, TINY, Scripted, act, end, endless, tiny_trials, two_episodes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


# what an agent is shown


def test_a_trial_is_played_to_its_end() -> None:
    kept, world = Kept(), two_episodes()
    rollout = Rollout(world, recorder=kept.recorder())
    shown: list[Turn] = []

    def agent(turn: Turn) -> Reply:
        shown.append(turn)
        return Reply(len(shown), Belief(len(shown) / 10))

    assert drive(rollout, agent) == "done"
    assert shown == world.script
    first, second = kept.of(EpisodeEnd)
    assert (first.number, first.turns, first.performance, first.ended) == (0, 3, 1.0, "terminated")
    assert (second.number, second.turns, second.performance, second.ended) == (1, 2, 1.0, "truncated")
    assert (first.belief, second.belief) == (Belief(0.3), Belief(0.5))
    steps = close_and_read(rollout, kept)
    assert [step.turn for step in steps] == [*world.script, None]
    assert [step.reply.action for step in steps[1:] if step.reply] == [1, 2, 3, 4, 5]
    assert [reply.action for reply in world.replies] == [1, 2, 3, 4]
    assert world.closed


def walk(value: Any) -> Any:
    """Every value inside a value."""
    yield value
    if isinstance(value, dict):
        for part in itertools.chain(value, value.values()):
            yield from walk(part)
    elif isinstance(value, list | tuple | set):
        for part in value:
            yield from walk(part)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            yield from walk(getattr(value, name))


@pytest.mark.parametrize("red_light", [False, True])
def test_nothing_of_the_truth_reaches_an_agent(maze: of.Domain[Any], red_light: bool) -> None:
    """Walks all that a whole run shows: no Truth, no name or note of the novelty, no word of an onset."""
    (trial,) = maze.trials(1, novelty="swapped+slip:hard", red_light=red_light, unchanged=0)
    world, received = maze.world(trial), [maze.spec(trial)]
    kept = Kept()
    agent = maze.agents["compass"](maze.spec(trial), 1)
    drive(Rollout(world, recorder=kept.recorder()), lambda turn: (received.append(turn), agent(turn))[1])
    truths = [step.truth for step in kept.steps() if step.truth]
    assert {truth.novel for truth in truths} == {False, True}
    parts = [part for each in received for part in walk(each)]
    assert len(received) > 100
    assert not any(isinstance(part, Truth) for part in parts)
    words = " ".join(part for part in parts if isinstance(part, str))
    secret = ("swap", "slip", "novel", "onset", "astray", "post", "before", "after", str(trial.seed))
    assert not any(word in words for word in secret)
    assert {turn.phase for turn in received[1:]} == {"training", "test"}
    lights = [turn.red_light for turn in received[1:]]
    assert lights == ([truth.novel for truth in truths[: len(lights)]] if red_light else [None] * len(lights))


def test_hesitation_shows_the_same_turn_again() -> None:
    kept, world = Kept(), two_episodes()
    rollout = Rollout(world, recorder=kept.recorder())
    assert rollout.reply(Reply(None, Belief(0.9))) is world.script[0]
    assert rollout.turns == 1
    assert world.replies == []
    assert rollout.reply(Reply("go")) == world.script[1]
    steps = close_and_read(rollout, kept)
    assert [step.reply and step.reply.action for step in steps] == [None, None, "go"]
    assert [step.turn for step in steps] == [world.script[0], world.script[0], world.script[1]]


@pytest.mark.parametrize("hesitate_at", [0, 1, 2])
def test_what_an_agent_does_to_a_turn_is_not_recorded_as_shown(hesitate_at: int) -> None:
    world = Scripted([of.Turn(observation={"cue": number}) for number in range(3)] + [end(3)])
    kept = Kept()
    rollout = Rollout(world, recorder=kept.recorder())
    hesitated: list[int] = []

    def scribble(turn: Turn) -> Reply:
        number = turn.observation["cue"] if turn.last is None else None
        if number == hesitate_at and number not in hesitated:
            hesitated.append(number)
            rollout.commit() if number else rollout._recorder.flush()  # type: ignore[union-attr]
            turn.observation["scribbled"] = True
            return Reply(None, Belief(0.5))
        return Reply(1)

    drive(rollout, scribble)
    shown = [step.turn.observation for step in close_and_read(rollout, kept) if step.turn]
    assert shown.count({"cue": hesitate_at}) == 2
    assert not any(isinstance(each, dict) and "scribbled" in each for each in shown)


def test_hesitations_in_a_row_are_bounded_and_others_are_not() -> None:
    rollout = Rollout(endless())
    for _ in range(MAX_HESITATIONS // 2):
        rollout.reply(Reply(None, Belief(0.5)))
        rollout.reply(Reply(None, Belief(0.5)))
        rollout.reply(Reply(1))
    for _ in range(MAX_HESITATIONS - 1):
        rollout.reply(Reply(None, Belief(0.5)))
    with pytest.raises(AgentProtocol, match="1000 replies in a row"):
        rollout.reply(Reply(None, Belief(0.5)))


def test_a_belief_that_was_asked_for_must_come() -> None:
    script = [Turn(ask=Ask.READY), act(1), Turn(ask=Ask.BELIEF), end(2)]
    kept = Kept()
    rollout = Rollout(Scripted(script), recorder=kept.recorder())
    rollout.reply(Reply())
    rollout.reply(Reply("go"))
    assert rollout.reply(Reply(None, Belief(0.25, 2))) == script[3]
    rollout.reply(Reply())
    assert rollout.over
    (episode,) = kept.of(EpisodeEnd)
    assert episode.belief == Belief(0.25, 2)

    rollout = Rollout(Scripted([Turn(ask=Ask.BELIEF), end()]))
    with pytest.raises(AgentProtocol, match="a belief was asked for"):
        rollout.reply(Reply("act"))


def test_hidden_episode_ends_are_booked_without_being_shown() -> None:
    truths = [FAR, Truth(performance=0.5, episode_over=True), FAR, Truth(performance=1.0, episode_over=True)]
    script = [act(0), act(1), act(2), end(3)]
    kept = Kept()
    rollout = Rollout(Scripted(script, truths), recorder=kept.recorder())
    assert drive(rollout, lambda turn: Reply(1, Belief(0.1 * turn.observation))) == "done"
    assert [(e.turns, e.performance, e.ended) for e in kept.of(EpisodeEnd)] == [
        (2, 0.5, "terminated"),
        (2, 1.0, "terminated"),
    ]


@pytest.mark.parametrize(
    ("script", "novel"),
    [
        ([act(0), act(1), act(2), end(3)], [False, True]),  # the end of a hidden one shows the next already
        ([act(0), end(1), act(2), end(3)], [True, True]),
        ([act(0), act(1)], [True]),  # cut off by the limit
    ],
)
def test_an_episode_is_as_novel_as_the_world_it_was_played_in(script: list[Turn], novel: list[bool]) -> None:
    over = len(script) == 4
    truths = [Truth(), *(Truth(novel=True, episode_over=over and number % 2 == 1) for number in range(1, len(script)))]
    kept = Kept()
    rollout = Rollout(Scripted(script, truths), Limits(episode_turns=None if over else 1), kept.recorder())
    drive(rollout, lambda turn: Reply(1))
    assert [episode.novel for episode in kept.of(EpisodeEnd)] == novel


# time


def test_replies_are_stamped_and_timed_worlds_see_it(clock: Clock) -> None:
    kept, world = Kept(), Scripted([act(0), act(1), end(2)], timed=True)
    rollout = Rollout(world, recorder=kept.recorder())
    for seconds in (0.25, 1.5):
        clock.pass_seconds(seconds)
        rollout.reply(Reply("go", took=99.0))
    assert [reply.took for reply in world.replies] == pytest.approx([0.25, 1.5], abs=2e-6)
    stamps = [step.took for step in close_and_read(rollout, kept)]
    assert stamps == pytest.approx([0, 250_000_000, 1_500_000_000], abs=1024)
    assert [reply.took for reply in world.replies] == [stamp / 1e9 for stamp in stamps[1:]]


def test_untimed_worlds_get_the_reply_itself() -> None:
    world, reply = endless(), Reply("go")
    Rollout(world).reply(reply)
    assert world.replies[0] is reply


def test_a_note_is_recorded_and_never_shown_to_the_world() -> None:
    kept, noted = Kept(), {"tokens": 12, "said": ["left", None]}
    world = two_episodes()
    stays: list[Reply] = []
    world.stays = lambda reply: bool(stays.append(reply))  # type: ignore[attr-defined]
    rollout = Rollout(world, recorder=kept.recorder())
    while not rollout.over:
        rollout.reply(Reply("left", Belief(0.2), note=noted))
    rollout.close()
    steps = past_of(kept)
    assert stays
    assert {reply.note for reply in (*world.replies, *stays)} == {None}
    assert [step.reply.note for step in steps if step.reply is not None] == [noted] * rollout.turns
    again = resume_rollout(two_episodes(), steps, known=0)
    told = list(recall(again))
    assert [reply.note for _, reply in told] == [noted] * rollout.turns


@pytest.mark.parametrize("note", [object(), 1 << 70, "x" * (9 << 20)])
def test_a_note_that_cannot_be_read_back_is_a_protocol_fault(note: Any) -> None:
    with pytest.raises(AgentProtocol, match="Turn 0: the note cannot be recorded"):
        Rollout(endless()).reply(Reply("left", note=note))


class Move(enum.IntEnum):
    UP = 1


class Trap(dict[str, Any]):
    """Fails when it is looked into, which must not look like a failure of the world."""

    def get(self, *_: Any) -> Any:
        raise ArithmeticError("got you")

    __getitem__ = __contains__ = get


class TrapList(list[Any]):
    def __len__(self) -> int:
        raise ArithmeticError("got you")

    __iter__ = __getitem__ = __len__  # type: ignore[assignment]


class TrapArray(np.ndarray[Any, Any]):
    def tolist(self) -> Any:
        raise ArithmeticError("got you")


@pytest.mark.parametrize(
    ("action", "seen"),
    [
        (Trap(a=1), {"a": 1}),
        ([Trap(a=TrapList([2]))], [{"a": [2]}]),
        (np.array([Trap(a=1)], dtype=object), [{"a": 1}]),
        (np.int64(4), np.int64(4)),
        ((1, 2.5), (1, 2.5)),
        (True, True),
        (Move.UP, Move.UP),
    ],
)
def test_a_world_sees_no_data_in_disguise(action: Any, seen: Any) -> None:
    kept, world = Kept(), two_episodes()
    rollout = Rollout(world, recorder=kept.recorder())
    drive(rollout, lambda turn: Reply(action))
    got = {id(reply): reply.action for reply in world.replies}.values()
    assert all(type(each) is type(seen) and each == seen for each in got)
    assert repr(world.replies[0].action) == repr(seen)
    plain = list(seen) if isinstance(seen, tuple) else seen
    assert all(step.reply is None or step.reply.action == plain for step in close_and_read(rollout, kept))


def test_arrays_of_numbers_reach_the_world_as_they_are() -> None:
    world, action = two_episodes(), np.zeros(3, dtype=np.float32)
    drive(Rollout(world), lambda turn: Reply(action))
    assert all(reply.action is action for reply in world.replies)


def test_an_action_that_fails_when_it_is_written_is_the_fault_of_the_agent() -> None:
    with pytest.raises(AgentProtocol, match="Turn 0: the reply cannot be recorded: got you"):
        drive(Rollout(endless()), lambda turn: Reply(np.zeros(3).view(TrapArray)))


def test_a_reply_that_did_not_come_through_drive_is_made_plain_too() -> None:
    world = two_episodes()
    Rollout(world).reply(Reply(Trap(a=1)))
    assert type(world.replies[0].action) is dict


def test_beliefs_notes_and_times_of_an_agents_own_classes_are_made_plain() -> None:
    kept, world = Kept(), two_episodes()
    rollout = Rollout(world, Limits(reply_seconds=None, tokens=100), kept.recorder())
    reply = Reply(1, Belief(0.5, 2, Trap(a=1)), "soon", Trap(tokens_in=1))  # type: ignore[arg-type]
    assert drive(rollout, lambda turn: reply) == "done"
    assert all(reply.belief is None or type(reply.belief.detail) is dict for reply in world.replies)
    assert {type(reply.took) for reply in world.replies} == {float}
    steps = close_and_read(rollout, kept)
    assert all(step.reply is None or step.reply.note == {"tokens_in": 1} for step in steps)


def test_a_late_reply_ends_the_rollout_and_leaves_the_turns_before(clock: Clock) -> None:
    kept, world = Kept(), endless()
    rollout = Rollout(world, Limits(reply_seconds=2.0), kept.recorder())
    clock.pass_seconds(2.0)
    rollout.reply(Reply(1))
    clock.pass_seconds(2.1)
    with pytest.raises(AgentTimeout, match="Turn 1: no reply within 2 s"):
        rollout.reply(Reply(2))
    assert len(close_and_read(rollout, kept)) == 2


def test_the_time_an_agent_was_away_is_not_its_own(clock: Clock) -> None:
    world = Scripted([act(0), act(1), act(2), end(3)], timed=True)
    rollout = Rollout(world, Limits(reply_seconds=2.0))
    clock.pass_seconds(61.0)
    rollout.guard.excuse(60_000_000_000)
    rollout.reply(Reply("go"))
    clock.pass_seconds(0.5)
    rollout.guard.excuse(7_000_000_000)  # it went while a reply was under way, and this turn was shown to nobody
    rollout.reply(Reply("go"))
    clock.pass_seconds(1.5)
    rollout.reply(Reply("go"))
    rollout.guard.excuse(1_000)  # what is over needs no time
    assert [reply.took for reply in world.replies] == pytest.approx([1.0, 0.0, 1.5], abs=2e-6)


def test_the_trial_limit_cuts_the_episode_under_way(clock: Clock) -> None:
    kept = Kept()
    rollout = Rollout(endless(), Limits(trial_seconds=5.0), kept.recorder())
    for _ in range(2):
        clock.pass_seconds(3.0)
        rollout.reply(Reply(1))
    assert (rollout.over, rollout.outcome) == (True, "truncated")
    assert [(e.turns, e.ended) for e in kept.of(EpisodeEnd)] == [(2, "truncated")]


def test_past_the_trial_limit_an_ended_episode_counts_as_it_ended(clock: Clock) -> None:
    """And the next one, of which no turn was played, does not count at all."""
    kept = Kept()
    rollout = Rollout(two_episodes(), Limits(trial_seconds=5.0), kept.recorder())
    rollout.reply(Reply(1))
    clock.pass_seconds(6.0)
    rollout.reply(Reply(1))
    assert not rollout.over
    rollout.reply(Reply())
    assert (rollout.over, rollout.outcome) == (True, "truncated")
    assert [(e.turns, e.ended) for e in kept.of(EpisodeEnd)] == [(3, "terminated")]


def test_the_episode_limit_truncates_the_trial() -> None:
    kept = Kept()
    rollout = Rollout(endless(), Limits(episode_turns=3), kept.recorder())
    assert drive(rollout, lambda turn: Reply(1)) == "truncated"
    assert rollout.turns == 3
    assert [(e.turns, e.ended) for e in kept.of(EpisodeEnd)] == [(3, "truncated")]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
def test_episodes_within_the_limit_are_left_alone(recorded: bool, hidden: bool) -> None:
    over = Truth(episode_over=True)
    script = [act(n) if hidden else end(n) if n % 3 == 2 else act(n) for n in range(11)] + [end(11)]
    truths = [over if n % 3 == 2 else FAR for n in range(12)]
    limits = Limits(reply_seconds=None, episode_turns=3)
    rollout = Rollout(Scripted(script, truths), limits, Kept().recorder() if recorded else None)
    assert drive(rollout, lambda turn: Reply(1)) == "done"


# faults


@pytest.mark.parametrize("answer", [None, "left", 3, {"action": 1}, (1, None)])
def test_what_is_no_reply_is_a_protocol_fault(answer: Any) -> None:
    kept = Kept()
    rollout = Rollout(endless(), recorder=kept.recorder())
    rollout.reply(Reply(1))
    with pytest.raises(AgentProtocol, match=r"Turn 1: the agent answered .* must return a Reply"):
        rollout.reply(answer)
    assert len(close_and_read(rollout, kept)) == 2


def recursive() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("make", [object, lambda: 2**70, recursive, lambda: "\ud800", lambda: {"a": [1, object()]}])
@pytest.mark.parametrize("where", ["action", "detail"])
def test_an_unrecordable_reply_is_a_protocol_fault_and_leaves_no_half_step(make: Callable[[], Any], where: str) -> None:
    kept = Kept()
    rollout = Rollout(endless(), recorder=kept.recorder())
    rollout.reply(Reply(1))
    size = len(rollout._recorder._buffer)
    bad = Reply([1, make()]) if where == "action" else Reply(1, Belief(0.5, None, make()))
    with pytest.raises(AgentProtocol, match="Turn 1: the reply cannot be recorded"):
        rollout.reply(bad)
    assert len(rollout._recorder._buffer) == size
    assert [step.reply and step.reply.action for step in close_and_read(rollout, kept)] == [None, 1]


@pytest.mark.parametrize(
    "belief",
    [
        *(0.7, "high", {}, Belief("high"), Belief(None), Belief(0.5, "two"), Belief(0.5, 2.5)),
        *(Belief(1.5), Belief(-0.5), Belief(float("nan")), Belief(()), Belief((0.5, 2.0)), Belief(np.zeros((10, 10)))),
    ],
)
@pytest.mark.parametrize("ask", [Ask.ACT, Ask.BELIEF])
def test_what_is_no_belief_is_a_protocol_fault(belief: Any, ask: Ask) -> None:
    kept = Kept()
    rollout = Rollout(endless(ask=ask), recorder=kept.recorder())
    with pytest.raises(AgentProtocol, match=r"Turn 0: .* is not a belief"):
        rollout.reply(Reply(1, belief))
    assert len(close_and_read(rollout, kept)) == 1


@pytest.mark.parametrize(
    ("belief", "read"),
    [
        (Belief(1), Belief(1.0)),
        (Belief((0.0, 1.0)), Belief((0.0, 1.0))),
        (Belief(np.float32(0.5)), Belief(0.5)),
        (Belief(np.array([0.5, 1.0])), Belief((0.5, 1.0))),
        (Belief([0.5]), Belief((0.5,))),
        (Belief(0.5, np.int64(3)), Belief(0.5, 3)),
        (Belief(1, 2, {"objects": [4, 9]}), Belief(1.0, 2, {"objects": [4, 9]})),
    ],
)
def test_beliefs_in_other_numbers_are_read_back_as_plain_ones(belief: Belief, read: Belief) -> None:
    kept = Kept()
    rollout = Rollout(endless(), recorder=kept.recorder())
    rollout.reply(Reply(1, belief))
    assert close_and_read(rollout, kept)[1].reply == Reply(1, read)


def test_a_failing_world_is_a_world_fault_and_the_reply_stays_on_record() -> None:
    kept = Kept()
    rollout = Rollout(Scripted([act(0), act(1), ArithmeticError("apart")]), recorder=kept.recorder())
    rollout.reply(Reply("a"))
    with pytest.raises(WorldFault, match="Turn 1: the world raised ArithmeticError: apart"):
        rollout.reply(Reply("b"))
    last = close_and_read(rollout, kept)[-1]
    assert (last.reply, last.turn) == (Reply("b"), None)


def test_a_world_that_shows_the_unrecordable_is_at_fault_not_the_agent() -> None:
    kept = Kept()
    rollout = Rollout(Scripted([act(0), act(object())]), recorder=kept.recorder())
    with pytest.raises(WorldFault, match="cannot be recorded"):
        rollout.reply(Reply("a"))
    assert [step.reply for step in close_and_read(rollout, kept)] == [None, Reply("a")]


def test_a_world_that_cannot_start_is_a_world_fault() -> None:
    with pytest.raises(WorldFault, match="could not start: ArithmeticError: apart"):
        Rollout(Scripted([ArithmeticError("apart")]))


def test_an_action_the_world_does_not_know_is_the_agents_fault() -> None:
    kept = Kept()
    rollout = Rollout(TINY.world(tiny_trials()[0]), recorder=kept.recorder())
    with pytest.raises(AgentProtocol, match="Turn 0: unknown action 7"):
        rollout.reply(Reply(7))
    assert close_and_read(rollout, kept)[-1].reply == Reply(7)


def test_a_crash_of_the_agent_names_turn_and_error() -> None:
    kept = Kept()
    rollout = Rollout(TINY.world(tiny_trials()[0]), recorder=kept.recorder())
    with pytest.raises(AgentCrashed, match="Turn 9: the agent raised ZeroDivisionError: no way out"):
        drive(rollout, Crasher(TINY.spec(tiny_trials()[0]), 0))
    assert len(close_and_read(rollout, kept)) == 10


@pytest.mark.parametrize("failing", [lambda r: r.reply("nonsense"), lambda r: drive(r, lambda turn: Reply(1))])
def test_an_ended_rollout_takes_no_reply_and_says_so_every_time(failing: Callable[[Rollout], Any]) -> None:
    rollout = Rollout(Scripted([act(0), end(1)]))
    with contextlib.suppress(AgentProtocol):
        failing(rollout)
    for _ in range(3):
        with pytest.raises(OpenfieldError, match="it takes no further reply"):
            rollout.reply(Reply(1))


@pytest.mark.parametrize("fault", [AgentProtocol("text"), AgentCrashed("too much"), AgentTimeout("silent")])
def test_a_save_that_fails_does_not_lose_the_episode(fault: Exception) -> None:
    def save(over: bool) -> bytes:
        raise fault

    kept = Kept()
    rollout = Rollout(two_episodes(), recorder=kept.recorder())
    rollout.save = save
    with pytest.raises(type(fault), match=f"Turn 3: {fault}"):
        drive(rollout, lambda turn: Reply(1))
    assert len(kept.of(EpisodeEnd)) == 1
    assert kept.of(AgentState) == []
    assert len(close_and_read(rollout, kept)) == 4


# stopping


def test_stop_ends_after_the_reply_under_way() -> None:
    kept = Kept()
    rollout = Rollout(endless(), recorder=kept.recorder())
    rollout.reply(Reply(1))
    rollout.stop()
    with pytest.raises(Cancelled):
        rollout.reply(Reply(2))
    assert [step.reply and step.reply.action for step in close_and_read(rollout, kept)] == [None, 1, 2]
    assert kept.of(AttemptEnd)[0].outcome == "cancelled"


def test_a_trial_that_ends_while_it_is_stopped_is_done() -> None:
    rollout = Rollout(Scripted([act(0), end(1)]))
    rollout.reply(Reply(1))
    rollout.stop()
    rollout.reply(Reply())
    assert (rollout.over, rollout.outcome) == (True, "done")


def test_a_stop_survives_the_end_of_an_episode() -> None:
    rollout = Rollout(two_episodes(), recorder=Kept().recorder())
    rollout.reply(Reply(1))
    rollout.reply(Reply(1))
    rollout.save = lambda over: (rollout.stop(), b"")[1]
    with pytest.raises(Cancelled):
        rollout.reply(Reply())


def test_the_pulse_shows_when_the_agent_is_being_asked() -> None:
    heartbeat = [0]
    seen: list[bool] = []

    class Watched(Scripted):
        def step(self, reply: Reply) -> Turn:
            seen.append(bool(heartbeat[0]))
            return super().step(reply)

    rollout = Rollout(Watched([act(0), act(1), end(2)]), recorder=Kept().recorder(), heartbeat=heartbeat)
    assert heartbeat[0] > time.monotonic_ns()  # by then it must have answered
    drive(rollout, lambda turn: (seen.append(bool(heartbeat[0])), Reply(1))[1])
    assert seen == [True, False, True, False, True]
    assert heartbeat[0] == 0


def test_commits_are_replaced_by_the_chunk_they_belong_to() -> None:
    kept = Kept()
    rollout = Rollout(two_episodes(), recorder=kept.recorder())
    rollout.commit()
    rollout.reply(Reply(0))
    rollout.reply(Reply(1))
    rollout.commit()
    assert [step.reply and step.reply.action for step in kept.steps()] == [None, 0, 1]
    rollout.reply(Reply(2))
    firsts = [(chunk.first, chunk.count) for chunk in kept.entries if hasattr(chunk, "crc")]
    assert firsts == [(0, 1), (1, 2), (0, 4)]
    assert [step.reply and step.reply.action for step in close_and_read(rollout, kept)] == [None, 0, 1, 2]


# a model

Choice = st.sampled_from(["act", "act", "act", "hesitate", "believe", "stop"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4), st.lists(Choice, max_size=40), st.integers(1, 6) | st.none()
)
def test_a_rollout_does_what_a_tiny_model_says(lengths: list[int], choices: list[str], limit: int | None) -> None:
    """The model: a flat list of turns, a place in it, and counts of what was replied in the episode."""
    script = [
        end((e, n)) if n == length else act((e, n)) for e, length in enumerate(lengths) for n in range(length + 1)
    ]
    kept = Kept()
    rollout = Rollout(Scripted(script), Limits(reply_seconds=None, episode_turns=limit), kept.recorder())
    at, used, booked, outcome = 0, 0, list[int](), ""
    recorded: list[tuple[Any, Any]] = [(None, script[0])]
    for number, choice in enumerate(choices):
        if outcome:
            break
        reply = {"act": Reply(number), "believe": Reply(number, Belief(0.5)), "stop": Reply(number)}.get(
            choice, Reply()
        )
        if choice == "stop":
            rollout.stop()
        ended, hesitates = script[at].last is not None, reply.action is None and script[at].last is None
        used, at = used + 1, at if hesitates else at + 1
        if ended:
            booked, used = [*booked, used], 0
        if at == len(script):
            outcome = "done"
        elif choice == "stop":
            outcome = "cancelled"
        elif limit is not None and used >= limit and script[at].last is None:
            outcome, booked = "truncated", [*booked, used]
        recorded.append((reply, script[at] if at < len(script) else None))
        try:
            rollout.reply(reply)
        except Cancelled:
            assert outcome == "cancelled"
            break
        assert rollout.over == (outcome in ("done", "truncated"))
        assert rollout.turns == number + 1
        if not outcome:
            assert rollout.turn == script[at]
    if rollout.over:
        assert rollout.outcome == outcome
    steps = close_and_read(rollout, kept)
    plain = [(step.reply, step.turn and (step.turn.ask, tuple(step.turn.observation))) for step in steps]
    assert plain == [(reply, turn and (turn.ask, turn.observation)) for reply, turn in recorded]
    assert [episode.turns for episode in kept.of(EpisodeEnd)] == booked


def test_a_world_that_shows_its_last_turn_again_has_more_said_of_the_episode() -> None:
    ended = end(1)
    script = [act(0), ended, ended, ended, act(2), end(3)]
    kept = Kept()
    rollout = Rollout(Scripted(script), recorder=kept.recorder())
    rollout.reply(Reply("on"))
    for novel in (0.2, 0.7):
        assert rollout.reply(Reply("wait", Belief(novel))) is ended
    assert not kept.of(EpisodeEnd)
    rollout.commit()
    again = resume_rollout(Scripted(script), past_of(kept))
    assert (again.turn, again.turns) == (ended, 3)
    rollout.reply(Reply())
    (episode,) = kept.of(EpisodeEnd)
    assert (episode.turns, episode.belief) == (4, Belief(0.7))
    drive(rollout, lambda turn: Reply("on"))
    steps = close_and_read(rollout, kept)
    assert [step.turn is None for step in steps] == [False, False, True, True, False, False, True]
    assert resume_rollout(Scripted(script), past_of(kept)).over


class Patient(Scripted):
    """Shows the last turn of the trial again to whoever waits."""

    def stays(self, reply: Reply) -> bool:
        return reply.action == "wait"

    def step(self, reply: Reply) -> Turn:
        self.at -= self.over
        return super().step(reply)


def test_of_the_last_episode_of_a_trial_more_is_said_where_the_world_lets_one_stay() -> None:
    ended = end(1)
    kept = Kept()
    rollout = Rollout(Patient([act(0), ended]), recorder=kept.recorder())
    rollout.reply(Reply("on"))
    for novel in (0.2, 0.7):
        assert rollout.reply(Reply("wait", Belief(novel))) is ended
        assert not rollout.over
    rollout.commit()
    again = resume_rollout(Patient([act(0), ended]), past_of(kept))
    assert (again.turn, again.turns, again.over) == (ended, 3, False)
    rollout.reply(Reply("on"))
    (episode,) = kept.of(EpisodeEnd)
    assert (episode.turns, episode.belief, rollout.over) == (4, Belief(0.7), True)
    steps = close_and_read(rollout, kept)
    assert [step.turn is None for step in steps] == [False, False, True, True, True]
    assert resume_rollout(Patient([act(0), ended]), past_of(kept)).over


def test_nobody_waits_at_the_end_of_an_episode_for_ever() -> None:
    ended = end(1)
    rollout = Rollout(Scripted([act(0), *[ended] * (MAX_HESITATIONS + 2), act(2)]))
    rollout.reply(Reply("on"))
    for _ in range(MAX_HESITATIONS - 1):
        rollout.reply(Reply("wait"))
    with pytest.raises(AgentProtocol, match="in a row without an action"):
        rollout.reply(Reply("wait"))


def test_a_rollout_has_few_enough_attributes_to_be_fast() -> None:
    """Python shares the keys of fewer than 30 attributes between the objects of a class."""
    rollout = Rollout(two_episodes(), recorder=Kept().recorder())
    rollout.save = lambda over: b""
    drive(rollout, lambda turn: Reply(1, Belief(0.5), note="said"))
    assert len(vars(rollout)) < 30
