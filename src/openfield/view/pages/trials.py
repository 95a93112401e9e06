"""The trials of a run: filtered by agent, scenario, how they ended and whether the change was noticed; any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from starlette.requests import Request

from openfield.errors import InvalidInput
from openfield.report.addresses import trials_address
from openfield.report.analysis import Analysis, TrialScore
from openfield.report.figures.curves import Curve, trace_all
from openfield.report.run_list import RunEntry
from openfield.view.page import analyses_of, library_of, page
from openfield.view.pages.trial import read_number

MAX_ROWS = 100
"""Trials on one page."""
OVER = ("done", "truncated", "playing", "waiting")
"""Outcomes that are not failures."""
NOTICED: dict[str, Callable[[TrialScore], bool]] = {
    "noticed": lambda trial: trial.noticed is not None,
    "missed": lambda trial: trial.onset is not None and trial.noticed is None,
    "alarm": lambda trial: trial.alarms > 0,
    "unchanged": lambda trial: trial.unchanged,
}
"""What can be asked about the change."""
SORTS = ("agent", "outcome", "before", "after", "onset", "noticed", "alarms", "episodes", "turns", "seconds")
"""What trials can be sorted by; with a minus in front the highest comes first."""


class ScenarioName(msgspec.Struct, frozen=True):
    """A scenario to choose."""

    id: str
    name: str
    novelty: str
    """What changes; with the domain where there are several."""


class TrialsPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the list of trials shows."""

    run: RunEntry
    trials: list[TrialScore]
    curves: dict[str, Curve]
    """Cell -> its episodes."""
    total: int
    found: int
    """How many fit what is looked for."""
    start: int
    next: int | None
    """The first trial of the next page."""
    wanted: dict[str, str]
    """What is looked for: `agent`, `scenario`, `outcome`, `noticed`, `search`, `sort`."""
    agents: list[str]
    scenarios: list[ScenarioName]
    outcomes: list[str]

    def address(self, **changed: str) -> str:
        """Return the address of this list with something else looked for."""
        return trials_address(self.run.key, **(self.wanted | changed))

    def page_at(self, start: int) -> str:
        """Return the address of this list from another trial on."""
        return self.address(**{"from": str(start)})

    def sort_by(self, column: str) -> str:
        """Return the address of this list sorted by a column, the other way round if it is already."""
        return self.address(sort=f"-{column}" if self.wanted["sort"] == column else column)

    @property
    def novelties(self) -> dict[str, str]:
        """Scenario -> what changes in it; empty if there is only one."""
        return {each.id: each.novelty for each in self.scenarios} if len(self.scenarios) > 1 else {}

    @property
    def agent_choices(self) -> list[tuple[str, str]]:
        """The agents, each with the words for it."""
        return [(agent, agent) for agent in self.agents]

    @property
    def scenario_choices(self) -> list[tuple[str, str]]:
        """The scenarios, each with the words for it."""
        return [(each.id, each.name) for each in self.scenarios]

    @property
    def outcome_choices(self) -> list[tuple[str, str]]:
        """The outcomes that occur, each with the words for it."""
        failed = [("failed", "failed")] if any(outcome not in OVER for outcome in self.outcomes) else []
        return failed + [(outcome, outcome.replace("_", " ")) for outcome in self.outcomes]


def read_trials(request: Request) -> TrialsPage:
    """Return the trials that fit the query."""
    library, key = library_of(request), request.path_params["run"]
    entry, analysis = library.entry(key), analyses_of(request).get(key, None)
    wanted = {name: request.query_params.get(name, "").strip() for name in WANTED}
    start = read_number(request, "from", 0)
    trials = analysis.trials if analysis is not None else []
    found = sort_trials([trial for trial in trials if _fits(trial, wanted)], wanted["sort"])
    shown = found[start : start + MAX_ROWS]
    following = start + MAX_ROWS
    return TrialsPage(
        run=entry,
        trials=shown,
        curves=trace_trials(request, key, shown),
        total=len(trials),
        found=len(found),
        start=start,
        next=following if following < len(found) else None,
        wanted=wanted,
        agents=list(analysis.outcomes) if analysis is not None else [],
        scenarios=_name_scenarios(analysis),
        outcomes=sorted({trial.outcome for trial in trials}),
    )


WANTED = ("agent", "scenario", "outcome", "noticed", "search", "sort")


def trace_trials(request: Request, key: str, trials: list[TrialScore]) -> dict[str, Curve]:
    """Return the episodes of trials, by cell."""
    wanted = {trial.cell for trial in trials}
    cells = (cell for cell in library_of(request).result(key).counted() if cell.id in wanted and cell.episodes)
    return {cell.id: trace_all([cell])[0] for cell in cells}


def sort_trials(trials: list[TrialScore], sort: str) -> list[TrialScore]:
    """Return trials in order: by a column, what has no value last; without one failures first, and controls last.

    Raises:
        InvalidInput: There is no such column.
    """
    column = sort.removeprefix("-")
    if not sort:
        return sorted(trials, key=lambda trial: (trial.control, trial.outcome in OVER, trial.person, trial.unchanged))
    if column not in SORTS:
        raise InvalidInput(f"Trials are sorted by {', '.join(SORTS)}, not by '{column[:40]}'.")
    known = [trial for trial in trials if getattr(trial, column) is not None]
    known.sort(key=lambda trial: getattr(trial, column), reverse=sort.startswith("-"))
    return known + [trial for trial in trials if getattr(trial, column) is None]


def _name_kinds(outcome: str) -> tuple[str, ...]:
    """Return what an outcome can be asked for by, beside its own name."""
    return ("unfinished",) if outcome in ("playing", "waiting") else () if outcome in OVER else ("failed",)


def _fits(trial: TrialScore, wanted: Mapping[str, str]) -> bool:
    if any(wanted[name] and getattr(trial, name) != wanted[name] for name in ("agent", "scenario")):
        return False
    if wanted["outcome"] not in ("", trial.outcome, *_name_kinds(trial.outcome)):
        return False
    if wanted["noticed"] and not (wanted["noticed"] in NOTICED and NOTICED[wanted["noticed"]](trial)):
        return False
    text = f"{trial.cell} {trial.trial} {trial.agent} {trial.outcome} {trial.note}".lower()
    return all(word in text for word in wanted["search"].lower().split())


def _name_scenarios(analysis: Analysis | None) -> list[ScenarioName]:
    scenarios = analysis.scenarios if analysis is not None else []
    several = len({each.scenario.domain for each in scenarios}) > 1
    named = []
    for each in scenarios:
        light = ", red light" if each.scenario.red_light else ""
        short = each.novelty if several else each.novelty.removeprefix(f"{each.scenario.domain}:")
        named.append(ScenarioName(each.id, each.novelty + light, short + light))
    return named


ROUTES = page("/runs/{run}/trials", "trials.html", read_trials)
