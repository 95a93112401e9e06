"""`openfield show`: list the cells of a run, the turns of a cell, all of a turn; film an episode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfield.cli.shared.parameters import Trust
from openfield.cli.shared.results import admit_domains
from openfield.console import escape_controls, print_json, print_rows, print_table, say_count
from openfield.options import Whole

if TYPE_CHECKING:
    from msgspec import Struct

    from openfield.journal.reader import CellRecord, Run
    from openfield.record import Step

EARLIER = "an earlier version"
SourceRow = tuple[str, list[str], str, str]
"""A source file: its name, its owner, its digest and its text."""


def show(
    run: Path,
    /,
    *,
    cell: Annotated[str | None, Parameter(metavar="ID")] = None,
    turn: Whole | None = None,
    film: Annotated[Path | None, Parameter(name=["--film", "--gif"], metavar="FILE")] = None,
    episode: Whole | None = None,
    trust: Trust = False,
    transcript: bool = False,
    source: Annotated[list[str] | None, Parameter(consume_multiple=True, metavar="[NAME]")] = None,
    json: bool = False,
) -> None:
    """Look into a run, turn by turn.

    Args:
        run: The run file.
        cell: The id of a cell, or its beginning: show its turns.
        turn: The number of a turn, counted from 0: show all of it, the hidden truth included. Needs `--cell`.
        film: Play an episode again and write it to this file as a film, a .webp or a .gif. Needs `--cell` and a domain
            that draws.
        episode: The number of the episode to film [0].
        trust: Film in a domain that the file names even if you did not sign it.
        transcript: Print the messages to a language model and its answers. Needs `--cell`.
        source: List the source files that the run file holds, or print one: the name of an agent or of a file, or the
            beginning of a digest.
        json: Print as JSON.

    Example:
        openfield show runs/birds.sqlite --cell 3f --turn 12
    """
    from openfield.errors import InvalidInput
    from openfield.journal.reader import Run

    if film is None and (episode is not None or trust):
        raise InvalidInput(f"{'--trust' if episode is None else '--episode'} needs --film.")
    with Run(run) as opened:
        if source is not None:
            _show_sources(opened, source, json)
        elif cell is None:
            if turn is not None or film is not None or transcript:
                needy = "--turn" if turn is not None else "--film" if film is not None else "--transcript"
                raise InvalidInput(f"{needy} needs --cell.")
            _show_cells(opened, json)
        elif transcript:
            _show_transcript(opened, opened.cell(cell), turn, json)
        elif film is not None:
            from openfield.report.film import write_film

            found = opened.cell(cell)
            admit_domains(opened, trust)
            count = write_film(opened, found, episode or 0, film, trust)
            print(f"{say_count(count, 'picture')} of episode {episode or 0} in {film}")
        else:
            _show_turns(opened, opened.cell(cell), turn, json)


def _show_sources(run: Run, wanted: list[str], as_json: bool) -> None:
    """List the source files of a run, or print those that a name stands for."""
    users = _list_users(run)
    rows = [(each.name, users.get(each.digest, [EARLIER]), each.digest, each.text) for each in run.sources()]
    for name in wanted:
        for file, _, digest, text in (found := _find_sources(rows, name)):
            printed = f"# {file} {digest[:12]}\n{text}" if len(found) > 1 else text
            print(escape_controls(printed) if sys.stdout.isatty() else printed, end="")
    if not wanted and as_json:
        print_rows(("file", "of", "digest", "text"), rows, as_json)
    elif not wanted:
        shown = [(file, ", ".join(of), digest[:12], text.count("\n")) for file, of, digest, text in rows]
        print_rows(("file", "of", "digest", "lines"), shown, as_json)


def _find_sources(rows: list[SourceRow], name: str) -> list[SourceRow]:
    """Return the files of an agent or domain, the latest of a file's name, or those whose digest begins like this."""
    from openfield.errors import UnknownName

    found = [row for row in rows if name in row[1]]
    found = found or [row for row in rows if name == row[0] and row[1] != [EARLIER]]
    found = found or [row for row in rows if name == row[0] or row[2].startswith(name)]
    if not found:
        raise UnknownName("source", name, {each for row in rows for each in (row[0], *row[1])}, label="In this run")
    return found


def _list_users(run: Run) -> dict[str, list[str]]:
    """Return by digest which agents and domains a file belongs to, as they are now."""
    from openfield.provenance.provenance import latest_versions, read_provenance

    provenance = read_provenance(run.facts, run.path)
    latest = [(name, version) for (_, name), version in latest_versions(provenance).items()]
    latest += {name: (name, version) for each in provenance for name, version in each.domains.items()}.values()
    latest += {name: (name, version) for each in provenance for name, version in each.wrappers.items()}.values()
    latest += [("experiment", each.experiment) for each in provenance if each.experiment is not None][-1:]
    users: dict[str, list[str]] = {}
    for name, version in latest:
        for part, digest in version.parts.items():
            if part.startswith("file ") and name not in users.setdefault(digest, []):
                users[digest].append(name)
    return users


def _show_cells(run: Run, as_json: bool) -> None:
    from openfield.provenance.people import list_people, name_people

    people = ("person",) if list_people(run) else ()
    titles = ("cell", "agent", *people, "domain", "novelty", "outcome", "episodes", "turns", "note")
    episodes = run.count_episodes()
    cells = name_people(run.cells(with_episodes=False), run.facts)
    rows = (_cell_row(cell, episodes.get((cell.id, cell.attempt), 0), bool(people)) for cell in cells)
    print_rows(titles, rows, as_json)


def _cell_row(cell: CellRecord, episodes: int, has_people: bool) -> tuple[object, ...]:
    trial = cell.trial
    twin = " (unchanged)" if trial.novelty and not trial.is_changed else ""
    player = (cell.agent, cell.person) if has_people else (cell.agent,)
    planned = cell.id, *player, trial.domain, ("+".join(trial.novelty) or "none") + twin
    return *planned, cell.outcome or "not over", episodes, cell.steps, cell.note


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


def _show_transcript(run: Run, cell: CellRecord, wanted: int | None, as_json: bool) -> None:
    """Print the messages in the notes of replies, of all turns or of one."""
    from openfield.errors import InvalidInput

    said = [
        {"turn": number, **message}
        for number, step in enumerate(run.steps(cell.id, cell.attempt))
        if step.reply is not None and wanted in (None, number)
        for message in _read_messages(step.reply.note)
    ]
    if not said:
        raise InvalidInput(f"Cell {cell.id} has no transcript{'' if wanted is None else ' there'}.")
    if as_json:
        print_json(said)
        return
    for message in said:
        thinking = f"(thinks) {message['thinking']}\n" if message.get("thinking") else ""
        print(escape_controls(f"--- turn {message['turn']}, {message['role']}\n{thinking}{message['content']}\n"))


def _read_messages(note: Any) -> list[dict[str, Any]]:
    """Return the messages of a note; agents may note anything."""
    transcript = note.get("transcript") if isinstance(note, dict) else None
    messages = [each for each in transcript if isinstance(each, dict)] if isinstance(transcript, list) else []
    return [{"role": "", "content": "", **each} for each in messages]


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
        _cut(_without_bytes(turn.observation)) if turn else "",
    )


def _without_bytes(value: Any) -> Any:
    """Return an observation with the digests of arrays, without their bytes if those are kept."""
    if isinstance(value, dict):
        return {name: _without_bytes(part) for name, part in value.items() if not isinstance(part, bytes)}
    return value


def _cut(value: object, limit: int = 60) -> str:
    text = str(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
