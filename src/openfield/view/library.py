"""The run files that the viewer shows: found in files and folders, read once and again only when they changed.

A file is known by a key that its address has (`addresses.name_run`). Only files that were given, or are in folders that
were given, can be reached. Files are hostile input: reading runs nothing that they name, and one that cannot be read is
listed with the reason.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from openfield.errors import UnknownName
from openfield.journal.reader import Run
from openfield.provenance.remarks import locate_remarks
from openfield.report.addresses import name_run
from openfield.report.run_list import RunEntry, RunSummary, drop_aliases, find_run_files, sort_runs, summarise_run
from openfield.result import Result

T = TypeVar("T")
Signature = tuple[int, ...]
"""Sizes and times of a run file and of its log; it changes when a file is written to."""
MAX_RESULTS = 8
"""How many runs are kept in memory as they were read."""


class Library:
    """The run files below some places."""

    def __init__(self, places: Iterable[str | Path], trust: bool = False) -> None:
        """Take files and folders; a file need not exist yet.

        Args:
            places: The files and folders.
            trust: Let code run that run files name, to draw pictures, even if this user did not sign it.
        """
        self.places = tuple(map(Path, places))
        self.trust = trust
        self.editable = False
        """Whether tags and notes of runs may be changed: where only this machine is let in."""
        self._paths: dict[str, Path] = {}
        self._keys: dict[Path, str] = {}
        self._summaries: dict[Path, tuple[Signature, RunSummary | None]] = {}
        self._results: OrderedDict[Path, tuple[Signature, Result]] = OrderedDict()
        self._lock = threading.RLock()

    def entries(self) -> list[RunEntry]:
        """Return all run files there are now, each once, those that are being played first, then the latest."""
        with self._lock:
            paths = drop_aliases(self.paths())
            found = {path: summary for path in paths if (summary := self._summarise(path)) is not None}
        keys = {summary.run: (self._name(path), path) for path, summary in found.items()}
        self._paths.update(dict(keys.values()))
        return [_enter(*keys[summary.run], summary) for summary in sort_runs(found.values())]

    def find(self, key: str) -> Path:
        """Return the run file with this key.

        Raises:
            UnknownName: The key is unknown.
        """
        if key not in self._paths:
            self._paths.update({self._name(path): path for path in self.paths()})
        if key not in self._paths:
            raise UnknownName("run", key, self._paths, label="Here")
        return self._paths[key]

    def entry(self, key: str) -> RunEntry:
        """Return a run file with its summary.

        Raises:
            UnknownName: The key is unknown, or it is that of another kind of file.
        """
        path = self.find(key)
        with self._lock:
            summary = self._summarise(path)
        if summary is None:
            raise UnknownName("run", key, (), label="Here")
        return _enter(key, path, summary)

    def open(self, key: str) -> Run:
        """Open a run file to read it; close it with `with`."""
        return Run(self.find(key))

    def result(self, key: str) -> Result:
        """Return a run as it was read when the file last changed."""
        path = self.find(key)
        with self._lock:
            signature = sign_file(path)
            known = self._results.get(path)
            if known is None or known[0] != signature:
                self._results[path] = known = (signature, Result([path]))
            self._results.move_to_end(path)
            while len(self._results) > MAX_RESULTS:
                self._results.popitem(last=False)
        return known[1]

    def sign(self, key: str) -> Signature:
        """Return what changes when a run file does."""
        return sign_file(self.find(key))

    def paths(self) -> list[Path]:
        """Return the files there are now, of which some may be no runs."""
        return list(find_run_files(place for place in self.places if place.exists()))

    def _name(self, path: Path) -> str:
        """Return the key of a file; finding out what a path leads to costs more than all else."""
        if path not in self._keys:
            self._keys[path] = name_run(path)
        return self._keys[path]

    def _summarise(self, path: Path) -> RunSummary | None:
        """Return the summary of a file. Whether it is live is a matter of time, so a live one is read anew."""
        signature = (*sign_file(path), *_sign_parts(locate_remarks(path)))
        known = self._summaries.get(path)
        if known is None or known[0] != signature or (known[1] is not None and known[1].is_live):
            self._summaries[path] = known = (signature, summarise_run(path))
        return known[1]


def _enter(key: str, path: Path, summary: RunSummary) -> RunEntry:
    return RunEntry(key, path, summary, path.stem)


def sign_file(path: Path) -> Signature:
    """Return a value that differs once a run file has changed."""
    return _sign_parts(path, Path(f"{path}-wal"))


def _sign_parts(*paths: Path) -> Signature:
    found: list[int] = []
    for each in paths:
        try:
            about = each.stat()
        except OSError:
            found += (-1, -1)
        else:
            found += (about.st_size, about.st_mtime_ns)
    return tuple(found)
