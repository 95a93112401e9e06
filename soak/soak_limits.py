"""A disk that is full and too few open files: one line says so, nothing is lost, and the same command goes on.

The room for files is limited as a quota does it (RLIMIT_FSIZE). `--sizes N` [100]: limits of the file's size;
`--files N` [40]: from 6 to N open files.
"""

from __future__ import annotations

import resource
from functools import partial
from pathlib import Path

from common import complete, finish, folder, parameter, report, run_words, tell

DOMAIN = "examples/maze.py"


def main(sizes: int, files: int) -> None:
    with folder() as place:
        whole = place / "whole.sqlite"
        complete(run_words(DOMAIN, whole, 0))
        expected, largest = tell(whole), whole.stat().st_size
        limits = [4096 + largest * number // sizes for number in range(sizes)]
        tried = [(resource.RLIMIT_FSIZE, limit, workers, (0, 75, 2)) for limit in limits for workers in (0, 2)]
        found = [disturb(place / f"{number}.sqlite", expected, *each) for number, each in enumerate(tried)]
        say("disk full", found)
        tried = [
            (resource.RLIMIT_NOFILE, limit, workers, (0, 1, 2)) for limit in range(6, files) for workers in (0, 1, 8)
        ]
        found = [disturb(place / f"f{number}.sqlite", expected, *each) for number, each in enumerate(tried)]
        say("open files", found)


def say(what: str, found: list[tuple[bool, bool, bool]]) -> None:
    for name, values in zip(
        ("tracebacks", "other exit statuses", "different in the end"), zip(*found, strict=True), strict=True
    ):
        report("limits", f"{what}: {name}", sum(values), 0, runs=len(found))


def disturb(
    path: Path, expected: object, kind: int, limit: int, workers: int, allowed: tuple[int, ...]
) -> tuple[bool, bool, bool]:
    """Play under a limit, then without; return what went wrong."""
    words = run_words(DOMAIN, path, workers)
    status, said = complete(words, preexec_fn=partial(resource.setrlimit, kind, (limit, limit)))
    traceback = "Traceback" in said
    last, _ = complete(words)
    other = last != 0 or tell(path) != expected
    path.unlink(missing_ok=True)
    if traceback or status not in allowed:
        print(said[-2_000:])
    return traceback, status not in allowed, other


if __name__ == "__main__":
    main(parameter("sizes", 100, 4), parameter("files", 40, 9))
    finish()
