"""Draw the figures of a paper with matplotlib, and write their data as a table.

`report/drawing.py` turns the same data into the marks of pages. There are two because neither can do the other's work:
marks on a page lead to their trials, follow the colours of the reader and must stay small, and a page needs no further
package; a paper needs exact widths, fonts inside the file, and PDF.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.files.csv_files import write_csv
from openfield.lazy import import_extra
from openfield.metrics.stats import two_sided
from openfield.report.drawing import PALETTE
from openfield.report.figures import IntervalPlot, Plot, PlotLine
from openfield.report.figures.paper import Figure, list_rows

NEED = ("figures", "A figure for a paper")
"""The extra that has matplotlib, and what needs it."""
FORMATS = ("pdf", "svg", "png")
WIDTH = "3.3in"
"""A column of most venues."""
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
"""Inches, by unit."""
MIN_WIDTH, MAX_WIDTH = 1.5, 30.0
MIN_PANEL, PANEL_HEIGHT = 1.45, 1.1
"""Inches of a panel: at least across, and of one with curves upwards."""
LINE = 0.15
"""Inches of a line of text upwards."""
MARK_HEIGHT, MARK_SPREAD = 0.13, 0.7
"""Inches of a row of one mark, and the part of the room of a place over which its marks are spread."""
LETTER = 0.055
"""Inches of a letter of a title."""
COLUMNS = ("panel", "agent", "line", "place", "value", "low", "high", "trials")
"""Of the table of a figure's data."""
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
MARKS = "os^DvPX*"
"""Lines and marks of agents: colours alone are not enough in print. There is one more of each than there are colours:
agents that share a colour differ in these."""
STYLE: dict[str, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "openfield",
    "text.parse_math": False,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.1,
    "savefig.dpi": 300,
}
"""What differs from matplotlib's defaults: fonts stay text in SVG and TrueType in PDF, as most venues ask."""
SAME: Mapping[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""What is written into a file of each format, so that the same data give the same bytes."""


def parse_width(text: str) -> float:
    """Return the inches of a width such as `3.3in`, `8.4cm`, `84mm` or `240pt`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *(in|cm|mm|pt)", text)
    inches = float(found[1]) * UNITS[found[2]] if found else 0.0
    if not MIN_WIDTH <= inches <= MAX_WIDTH:
        raise InvalidInput(
            f"A width is a number with in, cm, mm or pt, such as {WIDTH}, from {MIN_WIDTH} to {MAX_WIDTH:.0f} inches, "
            f"not '{text}'."
        )
    return inches


class PaperFigure:
    """A figure of a run, which a notebook shows, and which can be saved and changed."""

    def __init__(self, data: Figure, width: str = WIDTH) -> None:
        """Take what is drawn, and how wide."""
        self.data = data
        self._width = parse_width(width)

    @property
    def caption(self) -> str:
        """What it shows, in a sentence or two."""
        return self.data.caption

    @cached_property
    def drawn(self) -> Any:
        """The `matplotlib.figure.Figure`, for changes of your own.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        with _styled():
            return _draw(self.data, self._width)

    def save(self, path: str | Path) -> Path:
        """Write it as PDF, SVG or PNG, by the name of the file, and return the path."""
        target = Path(path)
        check_format(target)
        content = self._write(target.suffix[1:].lower())
        with replacing(target) as draft:
            draft.write_bytes(content)
        return target

    def save_data(self, path: str | Path) -> Path:
        """Write its points as CSV, and return the path: panel, agent, line, place, value, interval, trials."""
        with replacing(Path(path)) as draft:
            write_csv(draft, COLUMNS, list_rows(self.data))
        return Path(path)

    def _repr_png_(self) -> bytes:
        return self._write("png")

    def _write(self, form: str) -> bytes:
        content = BytesIO()
        drawn = self.drawn
        with _styled():
            drawn.savefig(content, format=form, metadata=SAME[form])
        return content.getvalue()


def check_format(path: Path) -> None:
    """Refuse a file whose name ends with no format of a figure."""
    if path.suffix[1:].lower() not in FORMATS:
        raise InvalidInput(
            f"A figure is written as {', '.join(FORMATS)}: name it {path.with_suffix('.pdf')}, for instance."
        )


@contextmanager
def _styled() -> Iterator[None]:
    """Draw in one style, whatever the user's own files say."""
    matplotlib = import_extra("matplotlib", *NEED)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def _draw(data: Figure, width: float) -> Any:
    figure = import_extra("matplotlib.figure", *NEED)
    slots = {agent: slot for slot, agent in enumerate(data.agents)}
    has_marks = isinstance(data.panels[0], IntervalPlot)
    across = min(len(data.panels), max(1, int(width / MIN_PANEL)))
    letters = int((width - (1.3 if has_marks else 0.5)) / across / LETTER)
    titles = [_break(panel.title, letters) for panel in data.panels]
    legend = _count_legend_rows(data, width)
    down = -(-len(titles) // across)
    met = _list_met(data)
    height = _measure_panel(met) + LINE * max(title.count("\n") + 1 for title in titles)
    drawn = figure.Figure((width, down * height + 2 * LINE + LINE * legend), layout="constrained")
    drawn.get_layout_engine().set(w_pad=0.02, h_pad=0.03, wspace=0.02, hspace=0.04)
    axes = list(drawn.subplots(down, across, squeeze=False, sharey=True, sharex=data.kind == "profile").flat)
    for axis, title, panel in zip(axes, titles, data.panels, strict=False):
        axis.set_title(title)
        if isinstance(panel, IntervalPlot):
            _draw_marks(axis, panel, slots, met)
        else:
            _draw_lines(axis, panel, slots, data.kind == "learning")
    for axis in axes[len(data.panels) :]:
        axis.remove()
    if data.across:
        drawn.supxlabel(data.across, fontsize=STYLE["axes.labelsize"])
    if data.values:
        drawn.supylabel(data.values, fontsize=STYLE["axes.labelsize"])
    if legend:
        names = {name: slots[agent] for agent, name in data.agents.items() if agent in data.drawn}
        learns, columns = data.kind == "learning", -(-len(names) // legend)
        handles = [_make_handle(slot, has_marks, learns) for slot in names.values()]
        drawn.legend(handles, [*names], loc="outside upper center", ncols=columns, columnspacing=1.2)
    return drawn


def _list_met(data: Figure) -> dict[str, list[str]]:
    """Return the agents that have a mark in each place of some panel, in their order; others take no room there."""
    marks = [mark for panel in data.panels if isinstance(panel, IntervalPlot) for mark in panel.marks]
    found = {(mark.place, mark.agent) for mark in marks}
    places = dict.fromkeys(mark.place for mark in marks)
    return {place: [agent for agent in data.agents if (place, agent) in found] for place in places}


def _measure_panel(met: Mapping[str, Sequence[str]]) -> float:
    """Return the inches of a panel upwards, without its title."""
    rows = len(met) * max(map(len, met.values()), default=0)
    return max(0.7, 0.25 + MARK_HEIGHT * rows) if rows else PANEL_HEIGHT


def _break(text: str, letters: int) -> str:
    """Break a text into lines of at most this many letters, where it has blanks."""
    letters = max(letters, 8)
    return fill(text, letters, break_on_hyphens=any(len(word) > letters for word in text.split()))


def _count_legend_rows(data: Figure, width: float) -> int:
    """Return in how many rows the names of the agents fit."""
    if len(data.drawn) < 2:
        return 0
    longest = max(len(data.agents[agent]) for agent in data.drawn)
    fits = max(1, int(width / (0.45 + LETTER * longest)))
    return -(-len(data.drawn) // fits)


def _draw_lines(axis: Any, panel: Plot, slots: Mapping[str, int], learns: bool) -> None:
    """Draw the lines of a panel with their intervals, and its onset.

    Args:
        axis: Where.
        panel: What.
        slots: Agent -> the number of its colour and line.
        learns: Whether lines tell tasks in a curriculum and tasks alone apart, and not agents.
    """
    if panel.onset is not None:
        axis.axvline(panel.onset, color="0.35", linestyle=(0, (3, 2)), linewidth=0.8, zorder=1)
    for line in panel.lines:
        slot = slots[line.agent]
        colour = PALETTE[slot % len(PALETTE)]
        places, values = [at for at, _ in line.points], [value for _, value in line.points]
        alone = line.kind == "b"
        axis.plot(
            places, values, color=colour, linestyle="--" if alone else _pick_line(slot), alpha=0.7 if alone else 1.0
        )
        for part in _list_bands(line):
            axis.fill_between(*zip(*part, strict=True), color=colour, alpha=0.15, linewidth=0)
    axis.set_xlim(panel.first, max(panel.last, panel.first + 1))
    highest = max((value for line in panel.lines for _, value in line.points if value is not None), default=1.0)
    wide = highest > 1.0 or axis.get_ylim()[1] > 2.0  # panels share an axis
    axis.set_ylim(-0.03, 2.06 if wide else 1.03)
    axis.set_yticks([0, 0.5, 1, *([1.5, 2] if wide else [])], ["0", ".5", "1", *(["1.5", "2"] if wide else [])])
    if panel.last > 1:
        axis.locator_params(axis="x", nbins=4, integer=True)
    else:
        axis.set_xticks([0, 0.5, 1], ["0", ".5", "1"])


def _list_bands(line: PlotLine) -> Iterator[list[tuple[float, float, float]]]:
    """Yield the stretches of a line that have intervals: place, lower end and upper end of each point."""
    part: list[tuple[float, float, float]] = []
    for (at, _), (low, high, _) in zip(line.points, line.spreads, strict=True):
        if low is not None and high is not None:
            part.append((at, low, high))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _draw_marks(axis: Any, panel: IntervalPlot, slots: Mapping[str, int], met: Mapping[str, Sequence[str]]) -> None:
    """Draw a value with its interval for each agent, place by place.

    Args:
        axis: Where.
        panel: What.
        slots: Agent -> the number of its colour and mark.
        met: Place -> the agents that share it.
    """
    for mark in panel.marks:
        slot, beside = slots[mark.agent], met[mark.place]
        at = panel.places.index(mark.place) + MARK_SPREAD * ((beside.index(mark.agent) + 0.5) / len(beside) - 0.5)
        ends = None if mark.interval is None else [[mark.value - mark.interval[0]], [mark.interval[1] - mark.value]]
        colour, shape = PALETTE[slot % len(PALETTE)], MARKS[slot % len(MARKS)]
        axis.errorbar(mark.value, at, xerr=ends, color=colour, marker=shape, markersize=3, linewidth=1, zorder=3)
    axis.set_yticks(range(len(panel.places)), [_break(place, 22) for place in panel.places])
    axis.set_ylim(len(panel.places) - 0.5, -0.5)
    for border in range(1, len(panel.places)):
        axis.axhline(border - 0.5, color="0.85", linewidth=0.5, zorder=1)
    if (bounds := two_sided(panel.bounds)) is not None:
        pad = 0.03 * (bounds[1] - bounds[0])
        axis.set_xlim(bounds[0] - pad, bounds[1] + pad)
        middle = (bounds[0] + bounds[1]) / 2
        axis.set_xticks([bounds[0], middle, bounds[1]], [f"{tick:g}" for tick in (bounds[0], middle, bounds[1])])
    else:
        axis.locator_params(axis="x", nbins=3)


def _make_handle(slot: int, has_marks: bool, learns: bool) -> Any:
    lines, colour = import_extra("matplotlib.lines", *NEED), PALETTE[slot % len(PALETTE)]
    if has_marks:
        return lines.Line2D([], [], color=colour, marker=MARKS[slot % len(MARKS)], markersize=3, linewidth=1)
    return lines.Line2D([], [], color=colour, linestyle=_pick_line(0 if learns else slot))


def _pick_line(slot: int) -> Any:
    return LINES[slot % len(LINES)]
