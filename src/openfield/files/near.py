"""Suggest the file that a user meant, where no file has the name that was typed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from openfield.errors import find_near

RUNS = Path("runs")
"""Where runs are written."""
RUN_SUFFIX = ".sqlite"
LIKENESS = 0.75
"""How alike names of files must be: more than those of options, as any file may lie about."""
MAX_FILES = 2_000
"""How many files of a folder are looked at."""


def suggest_file(path: Path) -> str:
    """Return " Did you mean FILE?", if there is a file with nearly this name beside it, here, or among the runs."""
    found = _find_near(path)
    return "" if found is None else f" Did you mean {found}?"


def suggest_run(path: Path) -> str:
    """Return the run file that was probably meant, or else how to see those that there are, or to make one."""
    found = suggest_file(path.with_suffix(RUN_SUFFIX)) if path.name else ""
    if found:
        return found
    has_runs = next(_list_files(RUNS, RUN_SUFFIX), None) is not None
    return " See those that there are: openfield list runs" if has_runs else " Make a run: openfield demo"


def _find_near(path: Path) -> Path | None:
    """Return the nearest file with the same suffix, or None."""
    folders = [path.parent, Path(), *([RUNS] if path.suffix in ("", RUN_SUFFIX) else [])]
    try:
        for folder in folders:  # the same name elsewhere is nearer than another name
            same = folder / path.name
            if same != path and same.is_file():
                return same
        for folder in dict.fromkeys(folders):
            known = {each.stem: each for each in _list_files(folder, path.suffix)}
            near = find_near(path.stem, known, LIKENESS)
            if near is not None:
                return known[near]
    except (OSError, ValueError):  # a folder may not be read, or the name is not that of a file
        pass
    return None


def _list_files(folder: Path, suffix: str) -> Iterator[Path]:
    if folder.is_dir():
        found = (each for each in islice(folder.iterdir(), MAX_FILES) if each.suffix == suffix and each.is_file())
        yield from sorted(found)
