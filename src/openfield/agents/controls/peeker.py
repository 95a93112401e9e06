"""A control that looks for the truth where no agent should find it, and believes what it finds.

It shows what trusting an agent means: in the process of the world it finds everything. Isolated, it must find nothing.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from openfield.agents.controls.control import Control, expect_change
from openfield.cell import Cell
from openfield.core import Belief, Spec, Turn
from openfield.domain import Domain
from openfield.errors import OpenfieldError
from openfield.journal.reader import Run
from openfield.rollout import Rollout
from openfield.trial import Trial

MAX_FILES = 200
"""Files that are opened at most: a folder may hold thousands of runs."""
MAX_PARTS = 2_000
"""Parts of an observation that are looked at."""
TELLING = re.compile(r"novel|truth|onset|chang(ed|e_)|secret", re.IGNORECASE)
NAMES = re.compile(r"(^|_)(id|ids|name|file|path)$", re.IGNORECASE)
RUN_FILE = re.compile(r"[^\s=:\x00]+\.sqlite")


class Peeker(Control):
    """Looks for the rollout in memory, for run files, and for telling words in what it is shown."""

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._seed = seed
        self._rollout: Rollout | None = None
        self._trials: list[Trial] = []
        self.found: list[str] | None = None
        """Where it found something; None before it has looked."""

    def believe(self, turn: Turn) -> Belief:
        """Return the truth if it is in reach, and where it was found."""
        changed = self._rollout is not None and self._rollout.turn is not turn  # a further trial of the same agent
        if self.found is None or changed:
            self.found = list(self._search(turn))
        return Belief(self._conclude(turn), detail={"found": self.found})

    def _conclude(self, turn: Turn) -> float:
        if self._rollout is not None:
            return float(self._rollout.world.truth.novel)
        if self._trials:
            return expect_change(self._trials, self.now).highest
        return float(any(_list_telling(turn.observation)))

    def _search(self, turn: Turn) -> Iterator[str]:
        """Look everywhere, keep what tells the truth, and yield where it was."""
        for place, rollouts in (("the call stack", _search_stack()), ("the memory", _search_memory())):
            self._rollout = next((one for one in rollouts if one.turn is turn), None)
            if self._rollout is not None:
                yield place
                return
        for path in list(_list_run_files())[:MAX_FILES]:
            if known := self._read_trials(path):
                self._trials += known
                yield f"the run file {path.name}"
        cells = [value for value in gc.get_objects() if isinstance(value, Cell) and value.seed == self._seed]
        if cells:
            self._trials += [cell.trial for cell in cells]
            yield "cells in memory"

    def _read_trials(self, path: Path) -> list[Trial]:
        """Return the trials of a run file that give an agent this seed, or come after one that does."""
        try:
            with Run(path) as run:
                cells = run.cells(with_episodes=False)
        except (OpenfieldError, OSError):
            return []
        own = {cell.trial.id for cell in cells if cell.cell.seed == self._seed}
        tests = [cell for cell in cells if not cell.trial.is_training and own & {cell.trial.id, cell.trial.after}]
        return [cell.trial for cell in tests if cell.outcome is None] or [cell.trial for cell in tests]


def _search_stack() -> Iterator[Rollout]:
    """Yield the rollouts among the variables of all callers."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, Rollout):
                yield value
        frame = frame.f_back


def _search_memory() -> Iterator[Rollout]:
    return (value for value in gc.get_objects() if isinstance(value, Rollout))


def _list_run_files() -> Iterator[Path]:
    """Yield run files near the working folder, and those that any process holds open or names."""
    seen: set[Path] = set()
    for path in (*_list_near(), *_list_named(), *_list_open()):
        if path not in seen:
            seen.add(path)
            yield path


def _list_near() -> Iterator[Path]:
    with suppress(OSError):
        here = Path.cwd()
        for folder in (here, *here.parents):
            for place in (folder, folder / "runs"):
                with suppress(OSError):
                    yield from place.glob("*.sqlite")


def _list_named() -> Iterator[Path]:
    """Yield the files that command lines and environments name."""
    for process in _list_processes():
        for source in ("cmdline", "environ"):
            with suppress(OSError):
                text = (process / source).read_bytes().decode(errors="replace")
                folder = Path(os.readlink(process / "cwd"))
                yield from (folder / name for name in RUN_FILE.findall(text) if (folder / name).is_file())


def _list_open() -> Iterator[Path]:
    """Yield the files that processes hold open, this one included."""
    for process in _list_processes():
        with suppress(OSError):
            for handle in list((process / "fd").iterdir()):
                with suppress(OSError):
                    target = os.readlink(handle)
                    if ".sqlite" in target:
                        yield Path(target.partition(".sqlite")[0] + ".sqlite")


def _list_processes() -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in Path("/proc").iterdir() if path.name.isdigit())


def _list_telling(observation: Any) -> Iterator[str]:
    """Yield what an observation says of the truth by name: `novel = True`, or an id such as `test-novel-3`."""
    waiting, looked = [("", observation)], 0
    while waiting and looked < MAX_PARTS:
        key, value = waiting.pop()
        looked += 1
        if isinstance(value, dict):
            waiting += [(str(name), part) for name, part in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(key, part) for part in value[:MAX_PARTS]]
        elif isinstance(value, str) and NAMES.search(key) and TELLING.search(value):
            yield value
        elif TELLING.search(key) and isinstance(value, bool | int | float) and value:
            yield key
