"""Write a static site about runs: a leaderboard, the page and the data of every run, and films.

The pages are those of `openfield report`, with links to each other. The site is made to be put on any web server, or
opened from a disk. The same run files give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from openfield.errors import InvalidInput, OpenfieldError
from openfield.files.atomic import replacing
from openfield.journal.reader import CellRecord, Run
from openfield.metrics.metric import Number
from openfield.metrics.scenario import Scenario, scenario_of
from openfield.metrics.selection import pick_numbers
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
from openfield.report import words
from openfield.report.addresses import name_scenario
from openfield.report.film import write_film
from openfield.report.matrix import Matrix, make_matrix, rank_first, rank_values
from openfield.report.page import write_page
from openfield.report.render import render
from openfield.result import Result


class LeaderboardRow(msgspec.Struct, frozen=True):
    """An agent in a scenario."""

    rank: int | None
    """By the first number that is shown; None if the agent has none. Agents with the same number share a rank."""
    agent: str
    trials: int
    outcomes: dict[str, int]
    numbers: dict[str, Estimate]
    runs: tuple[str, ...]
    """The runs that it played in."""
    versions: str
    """Which cells were not played by the latest known version of the agent, in words; empty if all were."""


class Leaderboard(msgspec.Struct, frozen=True):
    """The agents of a scenario, the one with the best number first; controls are left out."""

    scenario: Scenario
    title: str
    novelty: str
    note: str
    """What a reader must know of its trials, such as that the onset is fixed."""
    rows: tuple[LeaderboardRow, ...]
    shown: tuple[str, ...]
    """The names of the numbers that tables show; the first one orders the rows."""


class PublishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run on the site, with the addresses of its files."""

    name: str
    page: str
    data: str
    films: dict[str, str]
    """Domain -> film of one of its trials, from the change on where there is one."""
    fingerprint: str
    planned: int
    played: int


class ShownBoard(msgspec.Struct, frozen=True):
    """A leaderboard with the numbers that it shows."""

    board: Leaderboard
    numbers: list[Number]

    @property
    def id(self) -> str:
        """Names its scenario on the pages of runs, and itself on the page of the site."""
        return name_scenario(self.board.scenario)

    @property
    def names(self) -> dict[str, str]:
        """Agent -> its name where there is little room."""
        return shorten_agents(row.agent for row in self.board.rows)

    @property
    def terms(self) -> str:
        """The terms of its trials, and what else a reader must know of them."""
        return "; ".join(filter(None, (words.describe_terms(self.board.scenario), self.board.note)))

    def title(self, number: Number) -> str:
        """Return the title of a number in the words of the scenario."""
        return words.name_number(number, self.board.scenario)[0]


class SitePage(msgspec.Struct, frozen=True):
    """What the page of the site shows."""

    matrix: Matrix | None
    """All agents in all domains, or in all novelties of the one domain; None if there is only one scenario."""
    boards: list[ShownBoard]
    runs: list[PublishedRun]
    reading: str

    @property
    def agents(self) -> int:
        """How many agents there are."""
        return len({row.agent for each in self.boards for row in each.board.rows})

    @property
    def pages(self) -> dict[str, str]:
        """Run -> the address of its page."""
        return {run.name: run.page for run in self.runs}


def write_site(runs: Sequence[Path], folder: Path, films: bool = True, trust: bool = False) -> list[str]:
    """Write the site, and return what could not be done, in sentences.

    Args:
        runs: Run files. Several are also read as one, for the leaderboard.
        folder: Where to write. Files of an earlier site are replaced, and those of runs it no longer has removed.
        films: Play a trial of each domain that draws again, and film it.
        trust: Run a domain that a run file names even if this user did not sign it.

    Raises:
        InvalidInput: There is no run, or two files contradict each other on a cell.
    """
    if not runs:
        raise InvalidInput("There is no run file to publish. Make a run: openfield demo")
    everything, notes = Result(runs), []
    summary = everything.summary()
    published, homes = [], dict[tuple[Scenario, str], list[str]]()
    for path, name in _name_runs(runs).items():
        result = everything if len(runs) == 1 else Result([path])
        for key in dict.fromkeys((scenario_of(cell), cell.agent) for cell in result.cells):
            homes.setdefault(key, []).append(name)
        made, said = _film_domains(path, result.cells, folder, name, trust) if films else ({}, [])
        notes += said
        (record,) = result.records
        _write_json(folder / "runs" / f"{name}.json", result.summary())
        links = {"Leaderboard": "../index.html", "JSON": f"{quote(name)}.json"}
        links |= {f"Film of {domain}": f"../{film}" for domain, film in made.items()}
        result.page(folder / "runs" / f"{name}.html", links=links)
        published.append(
            PublishedRun(
                name=name,
                page=f"runs/{quote(name)}.html",
                data=f"runs/{quote(name)}.json",
                films=made,
                fingerprint=record.fingerprint,
                planned=record.planned - record.dropped,
                played=record.played,
            )
        )
    boards = list(_make_boards(everything, summary, homes))
    _remove_earlier(folder, published)
    _write_json(folder / "leaderboard.json", {"boards": boards, "runs": published})
    numbers = {number.name: number for number in summary.numbers}
    shown = [ShownBoard(board, [numbers[name] for name in board.shown]) for board in boards]
    matrix = make_matrix(summary, everything.domains) if len(boards) > 1 else None
    page = SitePage(matrix, shown, published, words.explain_reading(summary))
    write_page(folder / "index.html", render("site.html", page))
    return notes


def _name_runs(runs: Sequence[Path]) -> dict[Path, str]:
    """Return a name for every run file: that of the file, with a number behind it if another file has it too."""
    names: dict[Path, str] = {}
    for path in runs:
        taken = sum(known.stem == path.stem for known in names)
        names[path] = path.stem if not taken else f"{path.stem}-{taken + 1}"
    return names


def _make_boards(
    result: Result, summary: Summary, homes: dict[tuple[Scenario, str], list[str]]
) -> Iterator[Leaderboard]:
    for scenario, members in words.group_scenarios(summary):
        agents, _ = words.split_controls(members)
        if not agents:
            continue
        shown = rank_first(pick_numbers(summary, agents))
        rows = _rank(agents, shown[0]) if shown else [(None, group) for group in agents]
        novelty = words.describe_novelty(scenario, result.domains)
        title, note = words.title_domain(scenario, result.domains), words.describe_onset(agents)
        made = (_make_row(rank, group, homes.get((scenario, group.agent), [])) for rank, group in rows)
        yield Leaderboard(scenario, title, novelty, note, tuple(made), tuple(number.name for number in shown))


def _rank(agents: Sequence[AgentResults], number: Number) -> list[tuple[int | None, AgentResults]]:
    """Return agents with their ranks by a number, the best first; those that failed everywhere have none."""
    found = [group.estimates.get(number.name) if words.has_played(group) else None for group in agents]
    ranks = rank_values([None if each is None else each.mean for each in found], number.better)
    return sorted(zip(ranks, agents, strict=True), key=lambda each: (each[0] or len(agents) + 1, each[1].agent))


def _make_row(rank: int | None, group: AgentResults, runs: Sequence[str]) -> LeaderboardRow:
    return LeaderboardRow(rank, group.agent, group.trials, group.outcomes, group.estimates, tuple(runs), group.versions)


class _EarlierSite(msgspec.Struct):
    """What is read of the leaderboard of an earlier site in the same folder."""

    runs: list[PublishedRun] = []


def _remove_earlier(folder: Path, published: Sequence[PublishedRun]) -> None:
    """Remove the files of runs that an earlier site in this folder had and the new one has not; nothing else."""
    try:
        earlier = msgspec.json.decode((folder / "leaderboard.json").read_bytes(), type=_EarlierSite).runs
    except (OSError, msgspec.DecodeError):
        return
    kept = {place for run in published for place in _list_files(run)}
    for place in {place for run in earlier for place in _list_files(run)} - kept:
        found = (folder / unquote(place)).resolve()
        if found.parent in ((folder / "runs").resolve(), (folder / "films").resolve()):
            found.unlink(missing_ok=True)


def _list_files(run: PublishedRun) -> Iterator[str]:
    yield from (run.page, run.data, *run.films.values())


def _film_domains(
    path: Path, cells: Sequence[CellRecord], folder: Path, name: str, trust: bool
) -> tuple[dict[str, str], list[str]]:
    """Film a trial of each domain of a run; return the films, and what could not be filmed."""
    films, notes = {}, []
    with Run(path) as run:
        for domain in sorted({cell.trial.domain for cell in cells}):
            moment = _pick_moment([cell for cell in cells if cell.trial.domain == domain])
            if moment is None:
                continue
            place = f"films/{name}-{domain.replace(':', '-').replace('/', '-')}.webp"
            try:
                write_film(run, *moment, folder / place, trust)
            except OpenfieldError as error:
                notes.append(f"No film of {domain} in {path}: {error}")
            else:
                films[domain] = quote(place)
    return films, notes


def _pick_moment(cells: Sequence[CellRecord]) -> tuple[CellRecord, int] | None:
    """Return the cell and the episode to film: the first in which the world has changed, else the first of all."""
    played = [cell for cell in cells if cell.episodes and not cell.control]
    changed = [
        (cell, episode.number) for cell in played for episode in cell.episodes if episode.novel and cell.is_scored
    ]
    return next(iter(changed), (played[0], 0) if played else None)


def _write_json(path: Path, data: object) -> None:
    """Write data as JSON, in the same order every time."""
    with replacing(path) as draft:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(data, order="deterministic"), indent=1) + b"\n")
