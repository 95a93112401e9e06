"""What several commands share: how results are printed and where.

Only the command line imports this.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfield.console import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cyclopts import Token

    from openfield.cell import Cell
    from openfield.domain import Domain
    from openfield.journal.reader import CellRecord
    from openfield.options import Launch
    from openfield.result import Result

Words = Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]
"""What a command does not know itself: flags of the domain."""


def _read_whole(_: Any, tokens: Sequence[Token]) -> int:
    """A number as people write it, `1e6` included, if it is whole: a half is not cut off in silence."""
    text = tokens[0].value
    if text.removeprefix("-").isdecimal():
        return int(text)
    with suppress(ValueError, OverflowError):
        if int(float(text)) == float(text):
            return int(float(text))
    raise ValueError(f"{text} is not a whole number")


Whole = Annotated[int, Parameter(converter=_read_whole)]
"""A whole number."""


def take_flags(domain: Domain[Any], command: str, words: Sequence[str]) -> Launch:
    """What a domain's own flags ask for."""
    from openfield.cli import app
    from openfield.options import read_flags

    own = [name for argument in app[command].assemble_argument_collection() for name in argument.names]
    launch = read_flags(getattr(domain, "flags", ()), command, words, [name for name in own if name.startswith("-")])
    prepare = getattr(domain, "prepare", None)
    ready: Launch = launch if prepare is None else prepare(launch, command)
    if ready.notice:
        print(ready.notice, file=sys.stderr, flush=True)
    return ready


def agents_aside(as_json: bool) -> AbstractContextManager[object]:
    """Sends what agents print in this process where it does not mix with JSON; workers do so themselves."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def fail_if_nothing_scored(result: Result, cells: Iterable[Cell]) -> None:
    """Ends with status 1 where every cell that was asked for failed, so that a script notices."""
    from openfield.errors import NothingScored
    from openfield.journal.reader import SCORED

    asked = {cell.id for cell in cells}
    if not any(cell.outcome in SCORED for cell in result.cells if cell.id in asked):
        raise NothingScored(f"No cell could be scored. See why: openfield show {quote(str(result.paths[0]))}")


def print_result(result: Result, as_json: bool, metrics: list[str] | None = None) -> None:
    """Prints the numbers of a result, as a table or as JSON."""
    if as_json:
        print_json(result.summary(metrics))
        return
    from rich.console import Console

    Console().print(result.table(metrics))
    if never := [cell for cell in result.cells if _never_changed(cell)]:
        print(f"In {len(never)} of {len(result.cells)} cells the change never came: the trial ended before its onset.")


def _never_changed(cell: CellRecord) -> bool:
    from openfield.journal.reader import SCORED

    return bool(cell.trial.novelty) and cell.outcome in SCORED and not any(episode.novel for episode in cell.episodes)
