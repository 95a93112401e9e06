"""Prove a run file: compute again what its turns and truths imply, and name every value that differs.

`Run.verify` is the way in. The recorded turns pass through a `Rollout` once more, which ends episodes and trials by the
same code as when they were played.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from openfield.core import Ask, Reply, Truth, Turn, World
from openfield.errors import AgentProtocol, DamagedRun, OpenfieldError, ReplayMismatch
from openfield.journal.fingerprint import CodeVersion
from openfield.journal.recorder import Recorder, digest_chunk, read_chunk
from openfield.journal.replay import resume_rollout
from openfield.journal.schema import SourceText, extend_chain
from openfield.limit_guard import CUT_OFF, NEVER, UNLIMITED
from openfield.parameters import is_command
from openfield.record import (
    ENCODER,
    NO_TURN,
    Chunk,
    EpisodeEnd,
    RawStep,
    Step,
    array_digest,
    is_same_truth,
    restore_arrays,
)
from openfield.rollout import Rollout
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.journal.reader import Episode

COMPARED = ("phase", "novel", "turns", "performance", "belief", "ended", "detail", "strength", "change")
"""The recorded values of an episode, in the order they are reported."""
ENDED = ("done", "truncated")
LEFT_OPEN = ("", "cancelled")
FAILED = ("agent_error", "agent_timeout", "agent_protocol", "agent_gone")
NOT_BY_AGENT = ("world_error", "harness_error")
OUTCOMES = (*ENDED, *LEFT_OPEN, *FAILED, *NOT_BY_AGENT, "superseded")
AGENT_NOTE = re.compile(
    r"Turn \d+: (?!the world raised |the agent answers |the trial has ended)"
    r"|The agent (could not be made:|ended the process it ran in|closed the files of|sent |left a question|has no save)"
    r"|The program (ended|left|did nothing) |No (answer|message) |(load|remember)\(\) raised "
    r"|The trial it comes after ended as agent_|.*, each of \d+ times while the agent was asked\.$"
)
"""What notes look like that openfield writes where an agent did wrong."""
DIFFERS_NOTE = re.compile(r"Turn \d+: the agent answers ")
"""How the note of an attempt begins that starts again, because its agent did not repeat what it had answered."""
WORLD_NOTE = re.compile(r"Turn (\d+): the world raised ")
COMMAND_FACT = "command "
"""How the keys of facts begin that say which version of each agent a command had."""


class Attempt(NamedTuple):
    """An attempt at a cell as it is recorded."""

    cell: str
    number: int
    outcome: str | None
    trial: Trial
    episodes: Sequence[Episode]
    note: str = ""
    replaced: bool = False
    """Whether a later attempt replaced it."""
    repeated: bool = False
    """Whether a known agent played it, and the same version of it the next attempt."""
    bound: bool = False
    """Whether its agent played inside openfield, where no protocol lets one leave."""

    @property
    def place(self) -> str:
        """Where a fault is."""
        return f"Cell {self.cell}, attempt {self.number}"


class RecordedWorld:
    """A world that shows recorded turns with their truths, whatever it is answered."""

    def __init__(self, first: Step, turn: Turn) -> None:
        self.over = False
        self.truth = first.truth or Truth()
        self._turn, self._coming = turn, first

    def play(self, rollout: Rollout, step: Step | None, over: bool = False) -> None:
        """Give the reply of a step to the rollout of this world, and show the turn that it led to."""
        if step is not None:
            self._coming, self.over = step, over
            rollout.reply(step.reply or Reply())

    def reset(self) -> Turn:
        """Show the first turn."""
        return self._turn

    def step(self, reply: Reply) -> Turn:
        """Show the recorded turn; without one, the last turn of the episode is shown again."""
        if self._coming.turn is None and self._turn.last is None:
            raise DamagedRun("its turn is missing")
        self.truth = self._coming.truth or self.truth
        self._turn = self._coming.turn or self._turn
        return self._turn

    def look(self, query: str) -> Any:
        """Show nothing: a record has no pictures."""

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


class EpisodeCollector(Recorder):
    """Keeps the ends of episodes and nothing else."""

    def __init__(self, cell: str, attempt: int) -> None:
        super().__init__(cell, attempt, lambda *_: None)
        self.episodes: list[EpisodeEnd] = []

    def write(self, *_: object) -> None:
        """Leave a step out."""

    def end_episode(self, episode: EpisodeEnd, state: bytes | None, hidden: bool = False) -> None:
        """Keep the end of an episode."""
        self.episodes.append(episode)


def find_false_steps(chunks: Iterable[tuple[Chunk, bytes]]) -> Iterator[str]:
    """Yield the faults of the chunks of an attempt, given with their chain values: gaps, damage, false chains.

    Raises:
        OversizedChunk: A chunk is too large. The others are not read: reading many takes for ever.
    """
    expected, chain = 0, b""
    for chunk, recorded in chunks:
        place = f"Cell {chunk.cell}, attempt {chunk.attempt}"
        chain = extend_chain(chain, digest_chunk(chunk))
        if chunk.first != expected:
            yield f"{place}: turns before {chunk.first} are missing."
        else:
            try:
                read_chunk(chunk)
                if recorded != chain:
                    yield f"{place}: turns {chunk.first} to {chunk.first + chunk.count - 1} do not fit their chain."
            except DamagedRun as error:
                yield str(error)
        expected, chain = chunk.first + chunk.count, recorded


def find_false_episodes(attempt: Attempt, steps: Iterator[Step]) -> Iterator[str]:
    """Yield every value of an attempt that its turns contradict, as recorded and as computed again."""
    try:
        made, ended, limited, count = replay_steps(attempt, steps)
    except OpenfieldError as error:
        yield f"{attempt.place}: its turns cannot have been played. {error}"
        return
    for number, (recorded, true) in enumerate(itertools.zip_longest(attempt.episodes, made)):
        place = f"{attempt.place}, episode {number}"
        if recorded is None or (true is not None and recorded.number > number):
            yield f"{place} is missing, although its turns are recorded."
            return
        if true is None or recorded.number != number:
            yield f"{place} is recorded, but no turns end it."
            return
        yield from _compare(place, recorded, true)
    yield from _find_false_outcome(attempt, ended)
    if attempt.outcome == "truncated":
        yield from _find_false_note(attempt, ended, limited)
    elif ended not in ENDED or attempt.note.startswith(CUT_OFF):
        yield from _find_false_failure(attempt, count)


def _find_false_outcome(attempt: Attempt, ended: str | None) -> Iterator[str]:
    """Yield the faults of an outcome. A trial that is over has its own, unless its agent could not be saved."""
    outcome = attempt.outcome or ""
    said = f"{attempt.place}: the outcome is recorded as {outcome or 'open'}"
    if outcome not in OUTCOMES:
        yield f"{attempt.place}: {_shorten(outcome)} is not an outcome."
    elif outcome in ENDED and ended not in (None, outcome):
        yield f"{said}; its turns say {ended}."
    elif ended not in ENDED or outcome == ended:
        return
    elif outcome in FAILED or (attempt.replaced and outcome in NOT_BY_AGENT):
        if not attempt.note:
            yield f"{said}; its turns say {ended}, and no note says what failed after them."
    elif not attempt.replaced:
        then = " If the run was killed at that moment, resume it." if outcome in LEFT_OPEN else ""
        yield f"{said}; its turns say {ended}.{then}"
    elif attempt.repeated and not attempt.note:
        yield f"{said}; its turns say {ended}, and no other version of its agent played it again."


def _find_false_note(attempt: Attempt, ended: str | None, limited: bool) -> Iterator[str]:
    """Yield the faults in the note of a truncated attempt, which says whether a limit on the agent ended it."""
    possible = ("trial_seconds",) if ended is None else ("trial_seconds", "episode_turns", "tokens")
    limits = [name for name in possible if getattr(attempt.trial.limits, name)]
    if attempt.note and not attempt.note.startswith(tuple(f"{CUT_OFF} {name} is " for name in limits)):
        yield f"{attempt.place}: no limit can have led to its note: {_shorten(attempt.note)}"
    elif limited and not attempt.note:
        yield f"{attempt.place}: a limit on the agent cut it off, but its note does not say so."
    elif attempt.bound and not attempt.note:
        yield f"{attempt.place}: it is recorded as truncated, but no limit is noted, and its agent could not leave."


def _find_false_failure(attempt: Attempt, steps: int) -> Iterator[str]:
    """Yield the faults in the outcome and the note of an attempt whose trial is not over.

    Only what openfield itself cannot have written is wrong: an agent may fail with any note.
    """
    outcome, note = attempt.outcome, attempt.note
    said = f"{attempt.place}: the outcome is recorded as {outcome or 'open'}"
    raised = WORLD_NOTE.match(note)
    if outcome is None and note:
        yield f"{said}, but it has a note: {_shorten(note)}"
    elif outcome in ("cancelled", *NOT_BY_AGENT) and AGENT_NOTE.match(note):
        yield f"{said}, but its note says what its agent did: {_shorten(note)}"
    elif outcome in NOT_BY_AGENT and (note.startswith(CUT_OFF) or (steps and not note)):
        yield f"{said}, but its note does not say what failed: {_shorten(note) or 'it is empty'}"
    elif outcome == "world_error" and raised is not None and steps < int(raised[1]) + 2:
        yield f"{said}, but the reply at which the world failed is missing: {_shorten(note)}"
    elif outcome == "superseded" and not attempt.replaced and not DIFFERS_NOTE.match(note):
        yield f"{said}, but there is no later attempt."
    elif outcome == "superseded" and attempt.repeated and note.startswith(CUT_OFF):
        yield f"{said}, but a limit had ended it, and no other version of its agent played it again."


class Replay(NamedTuple):
    """What the recorded steps of an attempt imply."""

    episodes: list[EpisodeEnd]
    ended: str | None
    """The outcome; None where it cannot be known."""
    limited: bool
    """Whether a limit must have ended them."""
    steps: int
    """How many there are."""


def replay_steps(attempt: Attempt, steps: Iterator[Step]) -> Replay:
    """Play recorded steps once more."""
    first, last = next(steps, None), next(steps, None)
    if first is None or first.turn is None:
        return Replay([], "unfinished", False, int(first is not None))
    world, collector = RecordedWorld(first, first.turn), EpisodeCollector(attempt.cell, attempt.number)
    own = attempt.trial.limits
    limits = msgspec.structs.replace(UNLIMITED, episode_turns=own.episode_turns, tokens=own.tokens)
    rollout = Rollout(world, limits, collector)
    count = 1 + (last is not None)
    for step in steps:
        world.play(rollout, last)
        last, count = step, count + 1
    more = attempt.outcome == "done" or len(collector.episodes) < len(attempt.episodes)
    if last is not None and (last.turn is not None or (more and rollout.turn.last is not None)):
        with suppress(AgentProtocol):  # the last of too many replies without an action is on record
            world.play(rollout, last, over=last.turn is None)  # else it holds a reply that could not be taken
    if rollout.over:
        return Replay(collector.episodes, rollout.outcome, rollout.outcome == "truncated", count)
    more = len(collector.episodes) < len(attempt.episodes)
    made = len(collector.episodes)
    if attempt.outcome != "truncated":
        if more and own.trial_seconds is not None and attempt.outcome != "done":
            rollout.truncate()  # time ended it before its agent failed, it was replaced, or the run was killed
        return Replay(collector.episodes, "unfinished", False, count)
    # An agent may leave by itself only between two episodes, or where it is asked for no action.
    if more or attempt.note or attempt.bound or rollout.turn.ask is Ask.ACT:
        rollout.truncate()
    limited = more or len(collector.episodes) > made
    return Replay(collector.episodes, None, limited, count)  # time or a protocol ended it, which turns do not show


def find_bound_agents(facts: Mapping[str, str], sources: Mapping[str, str | None]) -> set[tuple[str, str, str]]:
    """Return the agents that played inside openfield, by domain, name and fingerprint.

    One of which commands had several versions is left out: it may have been a program that could leave.
    """
    versions: dict[tuple[str, str], set[str]] = {}
    for text in (text for key, text in facts.items() if key.startswith(COMMAND_FACT)):
        with suppress(msgspec.DecodeError):
            for domain, agents in msgspec.json.decode(text, type=_Command).agents.items():
                for name, version in agents.items():
                    versions.setdefault((domain, name), set()).add(version.fingerprint)
    return {
        (domain, name, fingerprint)
        for (domain, name), found in versions.items()
        for fingerprint in found
        if len(found) == 1 and not is_command(sources.get(name) or "wire:")  # one without a source connects by itself
    }


class _Command(msgspec.Struct, frozen=True):
    """The agents in a recorded command."""

    agents: dict[str, dict[str, CodeVersion]] = {}


def find_false_arrays(attempt: Attempt, steps: Iterable[Step]) -> Iterator[str]:
    """Yield the turns with an array whose bytes do not match its digest."""
    for number, step in enumerate(steps):
        try:
            restore_arrays([step.turn.observation, step.turn.feedback] if step.turn is not None else None)
        except ValueError as error:
            yield f"{attempt.place}: turn {number}: {error}."


def find_false_turns(attempt: Attempt, make_world: Callable[[Trial], World], steps: Iterable[RawStep]) -> Iterator[str]:
    """Play the recorded replies of an attempt in a fresh world. Yield the first turn or truth that differs."""
    scored = attempt.outcome in ENDED
    past = (step for step in steps if scored or bytes(step.turn) != NO_TURN)  # a failed reply led nowhere
    try:
        world = make_world(attempt.trial)
        with closing(world):
            resume_rollout(world, _comparing(past, world), known=NEVER)
    except Exception as error:
        said = str(error) if isinstance(error, OpenfieldError) else f"{type(error).__name__}: {error}"
        yield f"{attempt.place}: {said}"


def _comparing(steps: Iterable[RawStep], world: World) -> Iterator[RawStep]:
    """Yield steps one by one, and compare the truth of the world that each has led to."""
    recorded = Truth()
    for number, step in enumerate(steps):
        recorded = step.truth or recorded
        yield step
        if not is_same_truth(world.truth, recorded):
            raise ReplayMismatch(f"The truth of turn {number} differs from the recorded one.")


def _compare(place: str, recorded: Episode, true: EpisodeEnd) -> Iterator[str]:
    for name in COMPARED:
        one, other = getattr(recorded, name), getattr(true, name)
        if not _is_same(one, other):
            yield f"{place}: {name} is recorded as {_shorten(one)}; its turns say {_shorten(other)}."


def _is_same(recorded: Any, true: Any) -> bool:
    """Compare a recorded value with one computed from turns, which hold digests of large arrays."""
    if ENCODER.encode(recorded) == ENCODER.encode(true):
        return True
    if isinstance(true, dict) and true.keys() == {"array", "shape", "dtype"} and isinstance(recorded, list):
        try:
            return array_digest(np.array(recorded, dtype=true["dtype"])) == true
        except (TypeError, ValueError, OverflowError):
            return False
    if isinstance(true, dict) and isinstance(recorded, dict):
        return recorded.keys() == true.keys() and all(_is_same(recorded[key], true[key]) for key in true)
    if isinstance(true, list) and isinstance(recorded, list):
        return len(recorded) == len(true) and all(map(_is_same, recorded, true))
    return False


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def find_false_sources(sources: Iterable[SourceText]) -> Iterator[str]:
    """Yield the recorded texts that are not what their digests say."""
    for source in sources:
        if hashlib.sha256(source.text.encode()).hexdigest() != source.digest:
            yield f"The text of {source.name} does not match its digest."
