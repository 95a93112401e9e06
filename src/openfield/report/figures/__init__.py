"""What figures show, as data: curves over episodes, samples, tasks of a curriculum, objectives at each stage.

Start with `curves.py`; `paper.py` gathers the figures of a paper. Nothing here is HTML: `report/drawing.py` turns these
values into the marks of pages, `report/export/paper_figure.py` into those of a paper, templates into tables. Addresses
are those of the viewer; a page that stands alone has none, and its figures lead nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from openfield.journal.reader import CellRecord
from openfield.metrics.scenario import scenario_of
from openfield.metrics.stats import Range
from openfield.report.addresses import name_scenario, trial_address, trials_address

Place = tuple[float, float | None]
"""Where a point lies on the axis, and its value from 0 to 1, if it has one."""
Spread = tuple[float | None, float | None, int]
"""The interval of a point, if it has one, and over how many trials it is."""


class PlotLine(msgspec.Struct, frozen=True):
    """A line of a plot."""

    kind: str
    """`p` is drawn as performance, `b` as belief."""
    points: Sequence[Place]
    agent: str = ""
    """Whose line it is, where a plot has those of several agents."""
    spreads: Sequence[Spread] = ()
    """The interval of each point, where a figure shows intervals."""


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """Lines over one axis, with values from 0 to 1."""

    title: str
    lines: list[PlotLine]
    first: float = 0.0
    last: float = 1.0
    """The ends of the axis."""
    ends: tuple[str, str, str] = ("", "", "")
    """What stands below the axis: at its left end, in the middle, and at its right end."""
    values: str = ""
    """What the lines are, where the title does not say it."""
    onset: float | None = None
    """Where the world changes."""
    unit: str = "episode"
    """What is counted from there on: `episode`, or `step` where the test counts steps."""
    thresholds: list[float] = []
    address: str = ""
    """Its source."""
    small: bool = False


class Mark(NamedTuple):
    """A value of an agent at a place, with an interval or the band of its null where it has one."""

    place: str
    agent: str
    value: float
    interval: tuple[float, float] | None = None
    band: tuple[float, float] | None = None
    trials: int = 0


class IntervalPlot(msgspec.Struct, frozen=True, kw_only=True):
    """One number of several agents at several places: stages of a trial, novelties or domains."""

    title: str
    unit: str = ""
    """The unit, and over what it is."""
    marks: list[Mark]
    agents: list[str]
    """Those that are drawn, in order."""
    places: list[str]
    """In order."""
    onset: int | None = None
    """The place that is the first after the onset, if the places are stages."""
    bounds: Range | None = (0.0, None)
    """The least and the highest value that the number can have."""


class Dot(msgspec.Struct, frozen=True):
    """A point of a scatter plot."""

    x: float
    y: float
    label: str
    group: str


class Bar(msgspec.Struct, frozen=True):
    """A value from -1 to 1 with its interval, and what the paper found for it."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    reference: float | None = None


class TrialLinks:
    """Finds the addresses of the trials that something was made of."""

    def __init__(self, run: str, cells: Iterable[CellRecord]) -> None:
        """Take the key of a run, and its cells. Without a key all addresses are empty."""
        self._run = run
        self._scenarios = {cell.id: name_scenario(scenario_of(cell)) for cell in cells} if run else {}

    def find(self, cells: Sequence[CellRecord]) -> str:
        """Return the address of one trial, or of the list of trials, narrowed to what these have in common."""
        if not self._run:
            return ""
        if len(cells) == 1:
            return trial_address(self._run, cells[0].id)
        agents, scenarios = {cell.agent for cell in cells}, {self._scenarios[cell.id] for cell in cells}
        shared = {name: found.pop() for name, found in (("agent", agents), ("scenario", scenarios)) if len(found) == 1}
        return trials_address(self._run, **shared)
