"""`openfield show`: list the cells of a run, the turns of a cell, all of a turn; film an episode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfield.cli.shared.parameters import Trust
from openfield.cli.shared.trust import admit_domains
from openfield.console import print_json, print_rows, print_table
from openfield.options import Whole

if TYPE_CHECKING:
    from msgspec import Struct

    from openfield.journal.reader import CellRecord, Run
    from openfield.record import Step


def show(
    run: Path,
    /,
    *,
    cell: Annotated[str | None, Parameter(metavar="ID")] = None,
    turn: Whole | None = None,
    gif: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    episode: Whole | None = None,
    trust: Trust = False,
    json: bool = False,
) -> None:
    """Look into a run, turn by turn.

    Args:
        run: The run file.
        cell: The id of a cell, or its beginning: show its turns.
        turn: The number of a turn, counted from 0: show all of it, the hidden truth included. Needs `--cell`.
        gif: Play an episode again and write it to this file as a film. Needs `--cell` and a domain that draws.
        episode: The number of the episode to film [0].
        trust: Film in a domain that the file names even if you did not sign it.
        json: Print as JSON.

    Example:
        openfield show runs/birds.sqlite --cell 3f --turn 12
    """
    from openfield.errors import InvalidInput
    from openfield.journal.reader import Run

    if gif is None and (episode is not None or trust):
        raise InvalidInput(f"{'--trust' if episode is None else '--episode'} needs --gif.")
    with Run(run) as opened:
        if cell is None:
            if turn is not None or gif is not None:
                raise InvalidInput(f"{'--gif' if turn is None else '--turn'} needs --cell.")
            _show_cells(opened.cells(), json)
        elif gif is not None:
            from openfield.report.film import write_film

            found = opened.cell(cell)
            admit_domains(opened, trust)
            count = write_film(opened, found, episode or 0, gif, trust)
            print(f"{count} pictures of episode {episode or 0} in {gif}")
        else:
            _show_turns(opened, opened.cell(cell), turn, json)


def _show_cells(cells: list[CellRecord], as_json: bool) -> None:
    titles = ("cell", "agent", "domain", "novelty", "outcome", "episodes", "turns", "note")
    print_rows(titles, [_cell_row(cell) for cell in cells], as_json)


def _cell_row(cell: CellRecord) -> tuple[object, ...]:
    trial = cell.trial
    twin = " (unchanged)" if trial.novelty and not trial.is_changed else ""
    planned = cell.id, cell.agent, trial.domain, ("+".join(trial.novelty) or "none") + twin
    return *planned, cell.outcome or "not over", len(cell.episodes), cell.steps, cell.note


def _show_turns(run: Run, cell: CellRecord, wanted: int | None, as_json: bool) -> None:
    from openfield.errors import InvalidInput

    steps = list(enumerate(run.steps(cell.id, cell.attempt)))
    if wanted is not None:
        if not steps:
            raise InvalidInput(f"Cell {cell.id} has no turns yet.")
        if not 0 <= wanted < len(steps):
            raise InvalidInput(f"Cell {cell.id} has turns 0 to {len(steps) - 1}.")
        print_json(_full(*steps[wanted]))
    elif as_json:
        print_json([_full(*each) for each in steps])
    else:
        titles = ("turn", "asks", "reward", "reply before it", "took", "truth", "observation")
        print_table(titles, (_short(*each) for each in steps))


def _full(number: int, step: Step) -> dict[str, Any]:
    """Return all of a step, the fields of its parts by name."""
    reply, turn, truth = (part and _changed(part) for part in (step.reply, step.turn, step.truth))
    return {"number": number, "reply": reply, "took_ns": step.took, "turn": turn, "truth": truth}


def _changed(part: Struct) -> dict[str, Any]:
    """Return the fields that differ from their defaults, without the time a reply took, which the step has."""
    from msgspec.structs import asdict, fields

    defaults = {field.name: field.default for field in fields(part)}
    return {name: value for name, value in asdict(part).items() if value != defaults[name] and name != "took"}


def _short(number: int, step: Step) -> tuple[str, ...]:
    """Return a step in the columns of a table."""
    turn, reply, truth = step.turn, step.reply, step.truth
    belief = f"  believes {reply.belief.novel}" if reply and reply.belief else ""
    detail = "" if truth is None or truth.detail is None else _cut(truth.detail)
    return (
        str(number),
        turn.ask.value if turn else "over",
        f"{turn.reward:g}" if turn else "",
        f"{_cut(reply.action)}{belief}" if reply else "",
        f"{step.took / 1e6:.2f} ms",
        ("novel " if truth and truth.novel else "") + detail,
        _cut(turn.observation) if turn else "",
    )


def _cut(value: object, longest: int = 60) -> str:
    text = str(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
