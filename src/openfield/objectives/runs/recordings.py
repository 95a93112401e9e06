"""Read the episodes of run files, grouped by agent, scenario and stage.

A cell is read step by step and counted; only the counts stay in memory. It is replayed if the record has only digests
of what was seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from openfield.capabilities import make_film
from openfield.core import Ask, Truth, Turn
from openfield.domain import Domain, make_world
from openfield.errors import DamagedRun, InvalidInput, OpenfieldError, UnknownName
from openfield.journal.reader import RESUMABLE, SCORED, CellRecord, Run
from openfield.journal.replay import resume_rollout
from openfield.metrics.scenario import scenario_of
from openfield.objectives.intervals import Counted, count_episode
from openfield.objectives.runs.observations import SIZE, SmallPicture, key_of
from openfield.provenance.people import list_people
from openfield.provenance.rules import read_rules
from openfield.provenance.trust import admit_code, trusted_domain
from openfield.record import RECORD_FACT, Step, action_key, observation_key, restore_arrays
from openfield.registry import known_domain, list_trial_code

Stage = Literal["training", "before", "after"]
STAGES: tuple[Stage, ...] = ("training", "before", "after")
HUMAN = "human"
"""What `openfield play` calls people."""
_DIGEST = {"array", "shape", "dtype"}


class Group(msgspec.Struct, frozen=True):
    """What episodes of one group have in common: the agent, the scenario and the stage."""

    domain: str
    novelty: str
    """What changes at the onset, joined by `+`; empty if nothing does."""
    settings: str
    red_light: bool
    agent: str
    stage: Stage


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a run."""

    agent: str | None = None
    """Read only the cells of this agent; None for all agents."""
    size: int = SIZE
    """Height and width to which pictures are downscaled."""
    pictures: bool = False
    """Count pictures of the world instead of the observations shown to the agent."""
    outcomes: tuple[str | None, ...] = SCORED
    """Read only cells with these outcomes."""
    trust: bool = False
    """Run domains that the run file names even if this user did not sign them."""


AS_SHOWN = Reading()


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of one run file."""

    path: Path
    size: int = SIZE
    """Height and width to which pictures were downscaled."""
    groups: dict[Group, list[Counted]] = {}
    inputs: dict[str, dict[Hashable, int]] = {}
    """The keys of observations in each domain, with their number in the episodes."""
    actions: dict[str, dict[Hashable, int]] = {}
    """The keys of actions in each domain, with their number in the episodes."""

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return sum(map(len, self.groups.values()))

    @property
    def pictures(self) -> int:
        """Number of different pictures that were seen, before they are discretized."""
        return sum(isinstance(key, SmallPicture) for seen in self.inputs.values() for key in seen)


def read_recordings(paths: Iterable[str | Path]) -> list[Recording]:
    """Read the episodes of several run files with `read_recording`."""
    return [read_recording(path) for path in paths]


def read_recording(path: str | Path, reading: Reading = AS_SHOWN) -> Recording:
    """Read the episodes of a run file, of all cells that count.

    Raises:
        InvalidInput: Nothing was scored, or an observation cannot be counted or replayed.
        JournalError: The file is not a run, or it is damaged.
        UnknownName: The run has no agent of that name.
    """
    found = Recording(path=Path(path), size=reading.size)
    with Run(path) as run:
        if reading.agent is not None and reading.agent not in run.agents:
            raise UnknownName("agent", reading.agent, run.agents, label="In this run")
        for cell in run.cells(with_episodes=False):
            if cell.outcome in reading.outcomes and reading.agent in (None, cell.agent):
                _read_cell(run, cell, found, reading)
    if not found.groups:
        raise InvalidInput(f"{path}: no agent has finished a trial in which it acted.")
    return found


def read_human(path: str | Path, reading: Reading = AS_SHOWN) -> Recording:
    """Read the episodes of the human in a run. Name the agent if the run has several and does not say who is one.

    People may stop early, so unfinished trials count as far as they were played.

    Raises:
        InvalidInput: The run has several agents, and it is not clear which is the human.
    """
    with Run(path) as run:
        names = list(run.agents)
        people = list_people(run) or [name for name in names if name == HUMAN]
    if reading.agent is None and len(people) == 1:
        reading = msgspec.structs.replace(reading, agent=people[0])
    if reading.agent is None and len(names) > 1:
        raise InvalidInput(f"{path}: which of {', '.join(names)} is the human? Say --human-agent NAME.")
    return read_recording(path, msgspec.structs.replace(reading, outcomes=(*SCORED, *RESUMABLE)))


def read_study(paths: Iterable[str | Path], reading: Reading = AS_SHOWN) -> Recording | None:
    """Read the episodes of people in the only one of these runs that has some; None if none has, or several have."""
    found = []
    for path in paths:
        with suppress(OpenfieldError), Run(path) as run:
            found += [path] if list_people(run) else []
    with suppress(OpenfieldError):
        return read_human(found[0], reading) if len(found) == 1 else None
    return None


def cut_episodes(steps: Iterable[Step]) -> Iterator[tuple[Stage, list[tuple[Any, Any]]]]:
    """Cut the steps of a cell into episodes. Yield the stage of each and its (observation, action) pairs.

    The last pair of an episode has the action None. Only turns that ask for an action count. Some episodes end
    without the agent knowing. The turn at such an end already shows the next episode: it is the last of the one and
    the first of the other. The stage of such an episode is that of its start.
    """
    moves: list[tuple[Any, Any]] = []
    shown: Turn | None = None
    truth = Truth()
    novel: bool | None = None
    for step in steps:
        if shown is not None and shown.ask is Ask.ACT and step.reply is not None:
            if step.reply.action is None:
                continue  # a belief on its own: the same turn is shown again
            if shown.last is None:
                moves.append((shown.observation, step.reply.action))
        if step.turn is None:
            continue  # the end, or more said of an episode that has ended
        shown, truth = step.turn, step.truth or truth
        novel = truth.novel if novel is None else novel
        if shown.last is not None or truth.episode_over:
            if moves:
                yield _stage(shown, truth.novel if shown.last else novel), [*moves, (shown.observation, None)]
            moves, novel = [], truth.novel
    if moves and shown is not None:
        yield _stage(shown, truth.novel), [*moves, (shown.observation, None)]


def _stage(turn: Turn, novel: bool) -> Stage:
    return "training" if turn.phase == "training" else "after" if novel else "before"


def _read_cell(run: Run, cell: CellRecord, found: Recording, reading: Reading) -> None:
    """Add the episodes of a cell to their groups."""
    met, pictures = scenario_of(cell), reading.pictures
    inputs, actions = found.inputs.setdefault(met.domain, {}), found.actions.setdefault(met.domain, {})
    replays = pictures or _must_replay(run, cell)
    domain = _find_domain(run, met.domain, replays, reading.trust)
    steps = _replayed(run, cell, domain, pictures) if domain and replays else _restored(run, cell)
    own = observation_key if domain is None else domain.encode
    encode = (lambda picture: picture) if pictures else own
    for stage, moves in cut_episodes(_encoded(steps, encode, domain, found.size, f"{run.path}: cell {cell.id}")):
        group = Group(met.domain, "+".join(met.novelty), met.settings, met.red_light, cell.agent, stage)
        found.groups.setdefault(group, []).append(count_episode(moves, inputs, actions))


def _find_domain(run: Run, name: str, replays: bool, trust: bool) -> Domain[Any] | None:
    """Return the domain of a cell, or None if the record is all it takes. Code that a file names runs only if it may.

    Raises:
        InvalidInput: Code that the file names is needed, and may not run here.
    """
    facts = run.facts
    source = facts.get(f"domain {name}", "")
    if replays:
        admit_code(run, list_trial_code(trial for trial in run.trials() if trial.domain == name), trust)
    try:
        return known_domain(name, source)
    except UnknownName:
        if f"rules {name}" in facts and not replays and not read_rules(facts, name).own_keys:
            return None
    admit_code(run, filter(None, [source]), trust)
    warnings.warn(f"{run.path} names this code, which runs now: {source or name}", stacklevel=2)
    return trusted_domain(run, name, trust)


def _must_replay(run: Run, cell: CellRecord) -> bool:
    """Return True if the record has only digests of the arrays that were shown."""
    turns = (step.turn for step in run.steps(cell.id, cell.attempt))
    shown = next((turn for turn in turns if turn is not None and turn.ask is Ask.ACT), None)
    return shown is not None and _holds_digest(shown.observation)


def _holds_digest(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == _DIGEST or any(map(_holds_digest, value.values()))
    return isinstance(value, list) and any(map(_holds_digest, value))


def _restored(run: Run, cell: CellRecord) -> Iterator[Step]:
    """Return the recorded steps of a cell, with the arrays whose bytes the file keeps."""
    steps = run.steps(cell.id, cell.attempt)
    return map(_restore, steps) if RECORD_FACT in run.facts else steps


def _restore(step: Step) -> Step:
    if step.turn is None:
        return step
    try:
        shown = msgspec.structs.replace(step.turn, observation=restore_arrays(step.turn.observation))
    except ValueError as error:
        raise DamagedRun(f"The record is damaged: {error}.") from None
    return msgspec.structs.replace(step, turn=shown)


def _replayed(run: Run, cell: CellRecord, domain: Domain[Any], pictures: bool) -> Iterator[Step]:
    """Yield the steps of a cell with their turns as they were shown: replay the trial and compare it with the record.

    With `pictures` each turn shows a picture of the world, or the last picture if the world draws none.
    """
    past, picture = run.raw_steps(cell.id, cell.attempt), None
    try:
        world = make_film(domain, cell.trial).world if pictures else make_world(domain, cell.trial)
        with closing(world):
            rollout = resume_rollout(world, past, cell.trial.limits, known=0)
            for step in run.steps(cell.id, cell.attempt):
                turn = rollout.turn if step.reply is None else rollout.reply(step.reply)
                if pictures:
                    seen = world.look("picture")
                    picture = picture if seen is None else seen
                    turn = msgspec.structs.replace(turn, observation=picture)
                yield step if step.turn is None else msgspec.structs.replace(step, turn=turn)
    except Exception as error:
        said = str(error) if isinstance(error, OpenfieldError) else repr(error)
        raise InvalidInput(f"{run.path}: cell {cell.id} cannot be replayed for its observations. {said}") from None


def _encoded(
    steps: Iterable[Step], encode: Callable[[Any], Any], domain: Domain[Any] | None, size: int, place: str
) -> Iterator[Step]:
    """Yield the steps with keys for observations and actions; turns that do not count get the observation None."""
    act = action_key if domain is None else domain.encode_action
    for number, step in enumerate(steps):
        try:
            yield _with_keys(step, encode, act, size)
        except (OpenfieldError, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidInput(f"{place}, turn {number} cannot be counted: {error!r}.") from None


def _with_keys(step: Step, encode: Callable[[Any], Any], encode_action: Callable[[Any], Any], size: int) -> Step:
    reply, turn = step.reply, step.turn
    if reply is not None and reply.action is not None:
        reply = msgspec.structs.replace(reply, action=encode_action(reply.action))
    if turn is not None:
        ends = turn.last is not None or (step.truth is not None and step.truth.episode_over)
        counts = turn.ask is Ask.ACT or ends
        turn = msgspec.structs.replace(turn, observation=key_of(encode(turn.observation), size) if counts else None)
    return msgspec.structs.replace(step, reply=reply, turn=turn)
