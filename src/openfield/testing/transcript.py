"""Play a trial and keep everything: what was shown, what was true, what was answered.

Part of the conformance kit. Its checks compare transcripts with each other and with their replays.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

import msgspec
import numpy as np

from openfield.core import Agent, Ask, Reply, Saves, Truth, Turn, World
from openfield.domain import Domain, make_world
from openfield.errors import OpenfieldError
from openfield.journal.reader import SCORED
from openfield.journal.recorder import Recorder, read_raw_chunk
from openfield.journal.replay import resume_rollout
from openfield.processes.child import send_heartbeat
from openfield.record import ENCODER, AgentState, Chunk, Entry, RawStep
from openfield.rollout import Rollout, drive
from openfield.runner.player import explain_failure
from openfield.testing.clocks import inside_world
from openfield.testing.leaks import parts_of
from openfield.trial import Limits, Trial

TRIAL_SECONDS = 20.0
"""For one trial; what was not reached by then is not looked at."""


class Transcript(msgspec.Struct, frozen=True):
    """A trial as it was played."""

    steps: list[RawStep]
    outcome: str
    note: str = ""
    unwritable: str = ""
    """Why the last turn cannot be recorded, if it cannot."""
    state: AgentState | None = None
    """What the agent saved after its first episode."""

    def count_hesitations(self) -> int:
        """Return the length of the longest row of replies that gave no action where one was asked for."""
        hesitates = (
            step.reply is not None and step.reply.action is None and _asks_action(before)
            for before, step in itertools.pairwise(self.steps)
        )
        return max((sum(row) for _, row in itertools.groupby(hesitates)), default=0)


class WatchedWorld:
    """A world that remembers what it showed and what was true."""

    def __init__(self, world: World) -> None:
        self._world, self.look, self.close = world, world.look, world.close
        self.timed = bool(getattr(world, "timed", False))
        if hasattr(world, "stays"):
            self.stays: Callable[[Reply], bool] = world.stays
        self.turns: list[Turn] = []
        self.truths: list[Truth] = []

    @property
    def truth(self) -> Truth:
        """The truth about the turn shown last."""
        return self._world.truth

    @property
    def over(self) -> bool:
        """Whether nothing follows."""
        return self._world.over

    def reset(self) -> Turn:
        """Start the trial."""
        with inside_world():
            return self._keep(self._world.reset())

    def step(self, reply: Reply) -> Turn:
        """Pass a reply on to the world."""
        with inside_world():
            return self._keep(self._world.step(reply))

    def _keep(self, turn: Turn) -> Turn:
        self.turns.append(turn)
        self.truths.append(self._world.truth)
        send_heartbeat()
        return turn


class ReplayedWorld(WatchedWorld):
    """A world that also remembers in what form it showed everything."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.shown: list[bytes] = []

    def find_altered(self) -> str:
        """Return which turn is the first that changed after it was shown; empty if none did."""
        for number, (turn, shown) in enumerate(zip(self.turns, self.shown, strict=True)):
            if _compared(turn) != shown:
                return f"turn {number} is altered after it was shown"
        return ""

    def _keep(self, turn: Turn) -> Turn:
        self.shown.append(_compared(turn))
        return super()._keep(turn)


class MutatedWorld(ReplayedWorld):
    """A world whose agent overwrites the turns it was shown and the actions it gave."""

    def step(self, reply: Reply) -> Turn:
        """Pass a reply on to the world."""
        copied = msgspec.structs.replace(reply, action=copy.deepcopy(reply.action))
        shown = self.turns[-1]
        overwrite(shown.observation)
        overwrite(shown.feedback)
        turn = super().step(copied)
        overwrite(copied.action)
        return turn


def overwrite(value: Any) -> None:
    """Overwrite everything in a value that can be changed."""
    for _, part in parts_of(value):
        overwrite(part)
    with suppress(AttributeError, TypeError):
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value.fill(0)
        elif isinstance(value, (dict, list, set, bytearray)):
            value.clear()
        elif isinstance(value, msgspec.Struct) or is_dataclass(value):
            for name, _ in parts_of(value):
                setattr(value, name, None)


def record_transcript(domain: Domain[Any], trial: Trial, agent: Agent) -> Transcript:
    """Let an agent play a trial, for `TRIAL_SECONDS` at most, and return the transcript."""
    entries: list[Entry] = []
    recorder = Recorder("transcript", 1, lambda *new: entries.extend(new))
    watched = WatchedWorld(domain.world(trial))
    rollout: Rollout | None = None
    try:
        rollout = Rollout(watched, Limits(None, trial.limits.episode_turns, TRIAL_SECONDS), recorder)
        # A state from within the trial shows whether an agent can go on from it.
        rollout.save = (lambda over: agent.save()) if isinstance(agent, Saves) else None
        outcome, note = drive(rollout, agent), ""
    except Exception as error:
        outcome, note = explain_failure(error)
    if rollout is not None:
        rollout.close(outcome, note)
    states = [entry for entry in entries if isinstance(entry, AgentState)]
    unwritable = _unwritable(watched) if outcome == "world_error" else ""
    return Transcript(_steps(entries), outcome, note, unwritable, states[0] if states else None)


def replay_in_world(
    domain: Domain[Any], trial: Trial, steps: Iterable[RawStep], kind: type[ReplayedWorld] = ReplayedWorld
) -> tuple[ReplayedWorld, OpenfieldError | None]:
    """Give recorded replies to a fresh world. Return what it showed, and the first difference from the record."""
    watched = kind(make_world(domain, trial))
    try:
        resume_rollout(watched, steps)
    except OpenfieldError as error:
        return watched, error
    finally:
        watched.close()
    return watched, None


def compare_agent(domain: Domain[Any], trial: Trial, agent: Agent, transcript: Transcript, known: int = 0) -> str:
    """Show an agent the turns of a transcript, from turn `known` on. Return where it answers otherwise."""
    watched = WatchedWorld(domain.world(trial))
    try:
        rollout = resume_rollout(watched, transcript.steps, known=known)
        while not rollout.over and rollout.turns < len(transcript.steps) - 1:
            rollout.reply(agent(rollout.turn))
    except OpenfieldError as error:
        return str(error)
    finally:
        watched.close()
    return ""


def _compared(turn: Turn) -> bytes:
    """Encode a turn so that equal turns give equal bytes."""
    return ENCODER.encode(msgspec.structs.astuple(turn))


def _steps(entries: list[Entry]) -> list[RawStep]:
    """Return all steps that led to a turn, and the last one of a trial that is over."""
    steps: list[RawStep] = []
    for entry in entries:
        if isinstance(entry, Chunk):
            del steps[entry.first :]  # a chunk replaces what was committed early
            steps += read_raw_chunk(entry)
    failed = any(getattr(entry, "outcome", "done") not in SCORED for entry in entries)
    return [step for step in steps if bytes(step.turn) != _NIL] if failed else steps


def _asks_action(step: RawStep) -> bool:
    return msgspec.msgpack.decode(step.turn, type=Turn).ask is Ask.ACT


def _unwritable(watched: WatchedWorld) -> str:
    try:
        ENCODER.encode((watched.turns[-1:], watched.truths[-1:]))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return f"turn {len(watched.turns) - 1}: {error}"
    return ""


_NIL = ENCODER.encode(None)
