"""A study: the objectives of many agents in many environments, and how these relate to each other.

Over `manifest`, `evaluation` and `similarity`; cached by content, so that a stopped study goes on where it was.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from openfield.errors import InvalidInput, OpenfieldError
from openfield.files.atomic import replacing
from openfield.files.large import allowing_large
from openfield.objectives.evaluation import NAMES, evaluate
from openfield.objectives.formats.large_tables import open_table, pair_files, summarise_file
from openfield.objectives.formats.load import content_hash
from openfield.objectives.intervals import count_table, objectives_at
from openfield.objectives.measures.correlations import Correlation, Observation, correlate
from openfield.objectives.measures.excess import EmpowermentEstimate, describe_saturation, estimate_empowerment
from openfield.objectives.measures.rarefaction import RarefiedJaccard, coverage_of, rarefy_pairs
from openfield.objectives.measures.similarity import similarity_of
from openfield.objectives.pool import run_in_pool
from openfield.objectives.study.manifest import HUMAN, Entry
from openfield.objectives.tables.table import Table

CACHE_VERSION = 5
"""Raised whenever the same files would give other numbers than before."""
MAX_SHUFFLED = 1_000_000
"""Transitions of a table up to which the permutation null of empowerment is computed."""
MAX_THINNED = 1_000_000
"""Rows of a table up to which values at equal numbers of transitions are computed."""
REWARD, SIMILARITY = "task_reward", "human_similarity"


class StudyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one environment."""

    environment: str
    agent: str
    values: dict[str, float | None] = {}
    """The objectives, `task_reward` and `human_similarity`; None where something is missing."""
    jsd_nats: float | None = None
    rarefied: list[RarefiedJaccard] = []
    """Human similarity at equal numbers of transitions."""
    coverage: float | None = None
    """Good-Turing estimate of the share of all its possible inputs that the agent has met."""
    transitions: int | float | None = None
    distinct: dict[str, int] = {}
    """Numbers of different inputs, actions, pairs, moves and transitions."""
    empowerment: EmpowermentEstimate | None = None
    """Empowerment beside its permutation null; None for tables of more than 1,000,000 transitions."""
    saturation: str = ""
    """Says in words that inputs hardly repeat."""
    equal_transitions: int | None = None
    """As many transitions as every table of the environment has."""
    equal: dict[str, float] = {}
    """Entropy and information gain at that number of transitions."""
    seeds: int | None = None
    """Lives that the values are means of; None if they come from one table."""
    intervals: dict[str, tuple[float, float]] = {}
    """95 % intervals of means over seeds."""
    lives: list[dict[str, float]] = []
    """The values of each life."""
    problems: tuple[str, ...] = ()
    """The faults of its files, or of their description."""
    reasons: dict[str, str] = {}
    """Why a value is None though nothing is wrong."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, and the correlations over the agents among them."""

    rows: list[StudyRow]
    correlations: list[Correlation]
    compat: bool = False
    """Whether images were compared by the original's rule for index 0."""
    facts: dict[str, str] = {}
    """What else a reader should know, by title."""


class Asked(msgspec.Struct, frozen=True):
    """How a study is made."""

    compat: bool = False
    """Whether images are compared by the original's rule for index 0."""
    allow_large: bool = False
    """Whether files are read whose content is far larger than the file."""


class StudyTask(msgspec.Struct, frozen=True):
    """What one process does: evaluate a table, at a number of transitions or all, or compare it with the human's."""

    kind: str
    paths: tuple[Path, ...]
    num_obs: int | None = None
    num_actions: int | None = None
    number: int | None = None
    """Transitions, of the kind `equal`."""
    asked: Asked = Asked()


PLAIN = Asked()


def run_study(
    entries: Sequence[Entry],
    cache: Path,
    asked: Asked = PLAIN,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    draws: int = 1000,
) -> Study:
    """Evaluate all tables that are not in the cache, then correlate.

    Args:
        entries: The agents, from `find_entries`.
        cache: A folder for results by content; a study that was stopped goes on from it.
        asked: How the study is made.
        workers: Processes.
        progress: Called with the number of tasks done and of all tasks.
        draws: Of bootstrap and permutations.
    """
    tasks = {task: None for entry in entries for task in _tasks(entry, asked)}
    results: dict[StudyTask, dict[str, Any]] = {}

    def run(tasks: Sequence[StudyTask], total: int) -> None:
        for task, result in _run_all(tasks, cache, workers):
            results[task] = result
            if progress is not None:
                progress(len(results), total)

    run(list(tasks), len(tasks))
    thinned = _equal_tasks(tasks, entries, results)
    run(list(thinned.values()), len(tasks) + len(thinned))
    rows = [
        _row(entry, asked, results, thinned)
        for entry in entries
        if any(_tasks(entry, asked)) or _lacks_reference(entry)
    ]
    return Study(rows=rows, correlations=correlate_rows(rows, draws), compat=asked.compat)


def _equal_tasks(
    tasks: Iterable[StudyTask], entries: Sequence[Entry], results: Mapping[StudyTask, dict[str, Any]]
) -> dict[Path, StudyTask]:
    """Return what computes the values of all tables of an environment at as many transitions as the shortest has."""
    places = {entry.shared: entry.environment for entry in entries if entry.shared}
    found: dict[str, list[tuple[StudyTask, int]]] = {}
    for task in tasks:
        number = results[task].get("transitions") if task.kind == "evaluate" else None
        if isinstance(number, int):
            found.setdefault(places[task.paths[0]], []).append((task, number))
    return {
        task.paths[0]: msgspec.structs.replace(task, kind="equal", number=min(number for _, number in group))
        for group in found.values()
        if len(group) > 1
        for task, _ in group
    }


def correlate_rows(rows: Sequence[StudyRow], draws: int = 1000) -> list[Correlation]:
    """Correlate all pairs of values over the agents, by Pearson and Spearman. The human is not among them."""
    agents = [row for row in rows if row.agent != HUMAN]
    found: list[Correlation] = []
    for x, y in combinations((*NAMES, REWARD, SIMILARITY), 2):
        points = [
            Observation(row.environment, row.agent, a, b)
            for row in agents
            if (a := row.values.get(x)) is not None and (b := row.values.get(y)) is not None
        ]
        if points:
            found += correlate(x, y, points, "pearson", draws=draws) + correlate(x, y, points, "spearman", draws=draws)
    return found


def work(task: StudyTask) -> dict[str, Any]:
    """Do one task; what goes wrong is part of the result."""
    try:
        with allowing_large(task.asked.allow_large):
            return _WORK[task.kind](task)
    except OpenfieldError as error:
        return {"problem": str(error)}
    except MemoryError:
        return {"problem": f"{_named(task)}: not enough memory; fewer --workers need less."}


def _tasks(entry: Entry, asked: Asked) -> Iterator[StudyTask]:
    if entry.shared:
        yield StudyTask("evaluate", (entry.shared,), entry.size.num_obs, entry.size.num_actions, asked=asked)
    if entry.human and entry.reference and entry.human != entry.reference:
        yield StudyTask("compare", (entry.reference, entry.human), asked=asked)


def _lacks_reference(entry: Entry) -> bool:
    """Whether there is a table to compare with the human's, and no such table."""
    return entry.human is not None and entry.reference is None


def _run_all(tasks: Sequence[StudyTask], cache: Path, workers: int) -> Iterator[tuple[StudyTask, dict[str, Any]]]:
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"Cannot write {cache}: {error.strerror or error}. Name another folder with -o.") from None
    hashes = functools.cache(content_hash)  # the human's table is compared with every agent's
    places = {task: _place(task, cache, hashes) for task in tasks}
    waiting = []
    for task in tasks:
        known = _read_cached(places[task])
        if known is None:
            waiting.append(task)
        else:
            yield task, known
    for task, result in _run_missing(waiting, workers):
        place = places[task]
        if place is not None and "problem" not in result:
            with replacing(place) as draft:
                draft.write_bytes(msgspec.json.encode(result))
        yield task, result


def _run_missing(tasks: Sequence[StudyTask], workers: int) -> Iterator[tuple[StudyTask, dict[str, Any]]]:
    if workers <= 1 or len(tasks) <= 1:
        yield from ((task, work(task)) for task in tasks)
        return
    left = dict.fromkeys(tasks)
    with suppress(BrokenProcessPool):
        for task, result in _run_in_pool(tasks, workers):
            del left[task]
            yield task, result
    for task in left:  # a process died and took the pool along: alone, each task says whether it was the one
        try:
            yield from _run_in_pool([task], 1)
        except BrokenProcessPool:
            yield task, {"problem": f"{_named(task)}: the process that read it died, perhaps for lack of memory."}


def _run_in_pool(tasks: Sequence[StudyTask], workers: int) -> Iterator[tuple[StudyTask, dict[str, Any]]]:
    return run_in_pool(work, tasks, workers)


def _named(task: StudyTask) -> str:
    return " and ".join(map(str, task.paths))


def _place(task: StudyTask, cache: Path, hashes: Callable[[Path], str]) -> Path | None:
    """Where the result is kept: named by the content of the files and the settings."""
    try:
        parts = [hashes(path) for path in task.paths]
    except InvalidInput:
        return None
    how = (task.num_obs, task.num_actions, task.number, task.kind == "compare" and task.asked.compat)
    key = "|".join([str(CACHE_VERSION), task.kind, *parts, *map(str, how)])
    return cache / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _read_cached(place: Path | None) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, Any]) if place is not None else None
    except (OSError, msgspec.DecodeError):
        return None


def _evaluate(task: StudyTask) -> dict[str, Any]:
    table = open_table(task.paths[0])
    found = evaluate(table, num_obs=task.num_obs, num_actions=task.num_actions)
    few = isinstance(table, Table) and (table.num_actions == 1 or table.counts.total <= MAX_SHUFFLED)
    known = estimate_empowerment(table.columns, table.counts) if isinstance(table, Table) and few else None
    return {
        "values": found.values,
        "transitions": found.n,
        "distinct": found.distinct,
        "empowerment": msgspec.to_builtins(known),
        "saturation": describe_saturation(table.counts),
        "reasons": found.reasons,
        "faults": found.faults,
    }


def _thin(task: StudyTask) -> dict[str, Any]:
    """Compute the values of a table at a number of transitions; none if it is large."""
    table = open_table(task.paths[0])
    if not isinstance(table, Table) or len(table.obs) > MAX_THINNED or task.number is None:
        return {"values": {}}
    return {"values": objectives_at([count_table(table)], task.number, task.num_obs)}


def _compare(task: StudyTask) -> dict[str, Any]:
    pairs = pair_files(*task.paths, compat=task.asked.compat)
    found = similarity_of(pairs)
    try:
        rarefied, reasons = rarefy_pairs(pairs), {}
    except InvalidInput as error:  # fractional counts can be compared, but not drawn from
        rarefied, reasons = [], {"rarefied": f"{_named(task)}: {error}"}
    return {
        "jaccard": found.jaccard,
        "jsd_nats": found.jsd_nats,
        "rarefied": msgspec.to_builtins(rarefied),
        "coverage": coverage_of(summarise_file(task.paths[1]).counts.inputs),
        "reasons": reasons,
    }


_WORK = {"evaluate": _evaluate, "equal": _thin, "compare": _compare}


def _row(
    entry: Entry, asked: Asked, results: Mapping[StudyTask, dict[str, Any]], thinned: Mapping[Path, StudyTask]
) -> StudyRow:
    parts = {task.kind: results[task] for task in _tasks(entry, asked)}
    at = thinned.get(entry.shared) if entry.shared else None
    evaluated, compared = parts.get("evaluate", {}), parts.get("compare", {})
    values: dict[str, float | None] = dict.fromkeys(NAMES) | evaluated.get("values", {})
    values |= {REWARD: entry.reward, SIMILARITY: compared.get("jaccard")}
    problems = [part["problem"] for part in parts.values() if "problem" in part]
    problems += evaluated.get("faults", [])
    reasons = evaluated.get("reasons", {}) | compared.get("reasons", {})
    if _lacks_reference(entry):
        reasons |= {SIMILARITY: f"needs the human's own table, {entry.environment}_human_human_disc"}
    return StudyRow(
        environment=entry.environment,
        agent=entry.agent,
        values=values,
        jsd_nats=compared.get("jsd_nats"),
        rarefied=msgspec.convert(compared.get("rarefied", []), list[RarefiedJaccard]),
        coverage=compared.get("coverage"),
        transitions=evaluated.get("transitions"),
        distinct=evaluated.get("distinct") or {},
        empowerment=msgspec.convert(evaluated.get("empowerment"), EmpowermentEstimate | None),
        saturation=evaluated.get("saturation", ""),
        equal_transitions=at.number if at else None,
        equal=results[at].get("values", {}) if at else {},
        problems=tuple(problems),
        reasons={} if problems else reasons,
    )
