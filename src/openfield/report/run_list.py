"""List run files: the content of each, its progress, and its notes.

For the command line and the viewer. A file that cannot be read is listed with the reason. Nothing a file names is run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from openfield.errors import InvalidInput, JournalError, NotARun
from openfield.files.near import suggest_run
from openfield.journal.reader import Run
from openfield.parameters import is_control
from openfield.provenance.provenance import read_provenance
from openfield.provenance.remarks import join_remarks


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run file at a glance."""

    run: str
    domains: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    """Agents beside them that must fail."""
    novelties: tuple[str, ...] = ()
    planned: int = 0
    """How many cells it has."""
    played: int = 0
    """How many of them are over."""
    is_live: bool = False
    """Whether a process plays some of them now."""
    started: str = ""
    changed: str = ""
    """When the file was written to last."""
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why it cannot be read; empty if it can."""


class RunEntry(msgspec.Struct, frozen=True):
    """A run that a page is about."""

    key: str
    """Its key in the addresses of a viewer; empty where the page stands alone."""
    path: Path
    summary: RunSummary
    name: str
    """What people call it: the name of the file."""


def list_runs(places: Iterable[str | Path]) -> list[RunSummary]:
    """Describe run files and those in folders, each once, those being played first, then the latest.

    Raises:
        InvalidInput: A place does not exist.
    """
    paths = drop_aliases(find_run_files(places))
    return sort_runs(summary for path in paths if (summary := summarise_run(path)) is not None)


def sort_runs(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """Return runs with those that are being played first, then the latest."""
    return sorted(sorted(runs, key=lambda each: each.changed, reverse=True), key=lambda each: not each.is_live)


def summarise_run(path: Path) -> RunSummary | None:
    """Describe a run file; None if it is another kind of file."""
    try:
        changed = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M:%S} UTC"
        with Run(path) as run, run.snapshot():
            facts, counts = run.facts, run.counts()
            provenance = read_provenance(facts, path)
            scenarios, agents = run.scenarios(), run.agents
            tags, notes = join_remarks(provenance, path)
            return RunSummary(
                run=str(path),
                domains=tuple(sorted({domain for domain, _ in scenarios})),
                agents=tuple(agent for agent, source in agents.items() if not is_control(source)),
                controls=tuple(agent for agent, source in agents.items() if is_control(source)),
                novelties=tuple(sorted({"+".join(novelty) or "none" for _, novelty in scenarios})),
                planned=counts.planned - counts.dropped,
                played=counts.played,
                is_live=run.is_held(time.time()),
                started=facts.get("started", ""),
                changed=changed,
                tags=tags,
                notes=notes,
            )
    except NotARun:
        return None
    except (JournalError, OSError) as error:
        return RunSummary(run=str(path), problem=str(error))


def find_run_files(places: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files that were named, and the SQLite files in folders.

    Raises:
        InvalidInput: A place does not exist.
    """
    for place in map(Path, places):
        if place.is_dir():
            yield from sorted(_walk(place))
        elif place.is_file():
            yield place
        else:
            raise InvalidInput(f"There is no run file or folder {place}.{suggest_run(place)}")


def drop_aliases(paths: Iterable[Path]) -> list[Path]:
    """Return the first path to each file: places may overlap, and links lead to files that are listed anyway.

    Files are compared by their numbers on the disk, as resolving many paths takes long.
    """
    found: dict[tuple[int, int], Path] = {}
    for path in paths:
        with suppress(OSError):  # it was removed just now
            about = path.stat()
            found.setdefault((about.st_dev, about.st_ino), path)
    return list(found.values())


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the SQLite files below a folder, but none in hidden folders."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in names if name.endswith(".sqlite") and not name.startswith("."))


def describe_runs(runs: Sequence[RunSummary]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the titles and rows of a table of runs."""
    titles = ("run", "domain", "agents", "novelties", "cells", "started", "tags", "note")
    return titles, [_describe(each) for each in runs]


def _describe(run: RunSummary) -> tuple[object, ...]:
    cells = f"{run.played}/{run.planned}{' (playing)' if run.is_live else ''}"
    agents = (*run.agents, *([f"{len(run.controls)} controls"] if run.controls else []))
    words = (", ".join(each) for each in (run.domains, agents, run.novelties))
    return run.run, *words, cells, run.started, " ".join(run.tags), run.problem or "; ".join(run.notes)
