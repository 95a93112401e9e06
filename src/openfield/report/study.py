"""A study of objectives as one HTML page and a folder of SVG drawings. The page loads nothing.

Every drawing is also a file of its own, so it carries its colours with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import msgspec

from openfield.objectives.evaluation import NAMES
from openfield.objectives.measures.correlations import Correlation
from openfield.objectives.study.manifest import published
from openfield.objectives.study.study import REWARD, SIMILARITY, Study, StudyRow
from openfield.report.objectives import NULL_TITLES, SIZES, row_null, study_record
from openfield.report.page import frame_page, write_page
from openfield.report.tables import draw_table

INK, BLUE, ORANGE = "currentColor", "#0072b2", "#d55e00"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's colours, which most eyes tell apart."""
COLUMNS = (*NAMES, REWARD, SIMILARITY)
WORDS = {
    "input_entropy": "input entropy",
    "info_gain_dirichlet": "information gain",
    "info_gain_sqrt_counts": "gain, sqrt counts",
    "info_gain_log_counts": "gain, log counts",
    "empowerment": "empowerment",
    REWARD: "task reward",
    SIMILARITY: "human similarity",
    "rarefied": "rarefied similarity",
}
READING = (
    "Entropies and information in nats. Information gain is the paper's: distinct transitions once, per 10^8 steps. "
    "Human similarity is the Jaccard index of images met; the rarefied one draws as many transitions from one as from "
    "the other. {} "
    "Correlations come with Fisher's 95 % interval, or a bootstrap over agents where Fisher's does not apply."
)


GAMES = (
    "Entropies and information in nats. Values are means over seeds, with 95 % intervals by Student's t. All lives are "
    "equally long. Thresholds and the number of inputs are those of all agents of a game together. Task reward is per "
    "1,000 steps. Information gain is the paper's: distinct transitions once, per 10^8 steps. Human similarity is the "
    "Jaccard index of images met, by thresholds of the person's images. Learners are linear and far smaller than the "
    "paper's. Correlations come with Fisher's 95 % interval, or a bootstrap over agents where Fisher's does not apply."
)
"""How a study of live games is read."""
RULES = {
    False: "Here index 0 with several codes counts as all of its images, none of which is an image of the other agent; "
    "study --compat follows the original's rule instead.",
    True: "Here, by the original's rule (--compat), index 0 with several codes counts as one image, that of its last "
    "code.",
}
"""Which rule for index 0 the similarities of a study follow, by whether it is the original's."""
PAPER_RULE = (
    "The published table, quoted beside them, used the original's rule: index 0 counts as one image, that of its last "
    "code."
)


class Dot(msgspec.Struct, frozen=True):
    """A point of a scatter plot."""

    x: float
    y: float
    label: str
    group: str


class Bar(msgspec.Struct, frozen=True):
    """A value with its interval, and what the paper found for it."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    reference: float | None = None


class Drawing(NamedTuple):
    """A drawing, the name of its file, and what it shows."""

    name: str
    title: str
    svg: str


def write_study(study: Study, folder: Path, title: str) -> Path:
    """Write `study.html`, `study.json` and one SVG per drawing, and return the path of the page."""
    drawings = list(draw_study(study))
    for drawing in drawings:
        write_page(folder / f"{drawing.name}.svg", drawing.svg)
    record = msgspec.json.format(msgspec.json.encode(study_record(study)), indent=1)
    write_page(folder / "study.json", record.decode())
    page = folder / "study.html"
    write_page(page, render_study(study, title, drawings))
    return page


def render_study(study: Study, title: str, drawings: Sequence[Drawing] | None = None) -> str:
    """Return the page as text."""
    environments = {row.environment for row in study.rows}
    counts = {"environments": len(environments), "rows": len(study.rows), "correlations": len(study.correlations)}
    facts = {name: str(count) for name, count in counts.items()} | study.facts
    return frame_page(title, facts, _sections(study, drawings or list(draw_study(study))), explain_study(study))


def explain_study(study: Study) -> str:
    """Explain how the numbers of a study are read, and by which rule images were compared."""
    if _is_live(study):
        return GAMES
    return READING.format(f"{RULES[study.compat]} {PAPER_RULE}")


def draw_study(study: Study) -> Iterator[Drawing]:
    """Draw a study: a heat map, bars against reward and human similarity, a scatter plot per objective."""
    if _is_live(study):
        for name in (*NAMES, REWARD, SIMILARITY):
            if any(name in life for row in study.rows for life in row.lives):
                title = f"{WORDS[name].capitalize()} of each life, and the mean of each agent with its 95 % interval"
                yield Drawing(f"lives_{name}", title, draw_lives(title, study.rows, name))
    title = "Correlations, z-scored within environments"
    yield Drawing("correlations", title, draw_heat_map(title, [WORDS[name] for name in COLUMNS], _matrix(study)))
    for yardstick in (REWARD, SIMILARITY):
        bars = list(_bars(study, yardstick))
        title = f"Correlation with {WORDS[yardstick]}; diamonds are the paper's"
        if bars:
            yield Drawing(f"bars_{yardstick}", title, draw_bars(title, bars))
    for name in (*NAMES, REWARD):
        dots = list(_dots(study, name))
        title = f"{WORDS[SIMILARITY].capitalize()} and {WORDS[name]}"
        if dots:
            yield Drawing(f"scatter_{name}", title, draw_scatter(title, WORDS[name], WORDS[SIMILARITY], dots))


def _is_live(study: Study) -> bool:
    """Return whether the values are means over lives that were played for the study."""
    return any(row.seeds is not None for row in study.rows)


def find(study: Study, x: str, y: str, kind: str = "pearson", pooling: str = "z-scored") -> Correlation | None:
    """Find one correlation of the study."""
    found = (line for line in study.correlations if {line.x, line.y} == {x, y} and line.kind == kind)
    return next((line for line in found if line.pooling == pooling), None)


def _matrix(study: Study) -> list[list[float | None]]:
    return [[1.0 if x == y else getattr(find(study, x, y), "r", None) for y in COLUMNS] for x in COLUMNS]


def _bars(study: Study, yardstick: str) -> Iterator[Bar]:
    reference = published().correlations["reward" if yardstick == REWARD else SIMILARITY]
    for name in COLUMNS:
        line = find(study, name, yardstick)
        if line is not None and line.r is not None:
            low, high = line.fisher or line.bootstrap or (None, None)
            yield Bar(WORDS[name], line.r, low, high, reference.get(name))


def _dots(study: Study, name: str) -> Iterator[Dot]:
    for row in study.rows:
        x, y = row.values.get(name), row.values.get(SIMILARITY)
        if x is not None and y is not None:
            yield Dot(x, y, row.agent, row.environment)


def _sections(study: Study, drawings: Sequence[Drawing]) -> Iterator[str]:
    problems = [f"{row.environment} / {row.agent}: {problem}" for row in study.rows for problem in row.problems]
    problems += _reasons(study)
    if problems:
        items = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
        yield f'<section class="alert"><h2>Not everything could be computed</h2><ul>{items}</ul></section>'
    yield f"<section><h2>Objectives</h2>{_rows_table(study)}{_counts_table(study)}{_equal_table(study)}</section>"
    if study.correlations:
        rules = "" if _is_live(study) else f"<p>{escape(RULES[study.compat])} {escape(PAPER_RULE)}</p>"
        tables = f"{_paper_table(study)}{rules}{_correlation_table(study)}"
        yield f"<section><h2>Correlations</h2>{tables}</section>"
    figures = "".join(
        f"<figure><figcaption>{escape(drawing.title)}</figcaption>{drawing.svg}</figure>" for drawing in drawings
    )
    yield f'<section><h2>Drawings</h2><div class="panels">{figures}</div></section>'


def _reasons(study: Study) -> list[str]:
    """Say why values are missing: once for all rows of an environment that have the same reason."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in study.rows:
        for name, why in row.reasons.items():
            found.setdefault((row.environment, name, why), []).append(row.agent)
    sizes = Counter(row.environment for row in study.rows)
    return [
        f"{place}{'' if len(agents) == sizes[place] > 1 else ' / ' + ', '.join(agents)}: {WORDS[name]} {why}"
        for (place, name, why), agents in found.items()
    ]


def _rows_table(study: Study) -> str:
    if _is_live(study):
        head = ("environment", "agent", "lives", *(WORDS[name] for name in COLUMNS))
        lines = [
            [row.environment, row.agent, str(row.seeds), *(_with_limits(row, name) for name in COLUMNS)]
            for row in study.rows
        ]
        return _table(head, lines)
    head = ("environment", "agent", *(WORDS[name] for name in COLUMNS), "rarefied", "coverage")
    body = []
    for row in study.rows:
        rarefied = row.rarefied[-1].jaccard if row.rarefied else None
        numbers = (*(row.values.get(name) for name in COLUMNS), rarefied, row.coverage)
        body.append([row.environment, row.agent, *map(_number, numbers)])
    return _table(head, body)


def _with_limits(row: StudyRow, name: str) -> str:
    low, high = row.intervals.get(name, (None, None))
    return _number(row.values.get(name)) + ("" if low is None else f" [{_number(low)}, {_number(high)}]")


def _counts_table(study: Study) -> str:
    """Draw how much was counted, and empowerment beside its permutation null."""
    head = ("environment", "agent", "transitions", *SIZES.values(), *NULL_TITLES, "saturation")
    body = []
    for row in study.rows:
        if row.transitions is not None:
            sizes = [f"{row.transitions:,}", *(f"{row.distinct.get(size, 0):,}" for size in SIZES)]
            null = row_null(row)
            told = [null.get(title, "–") for title in NULL_TITLES]
            body.append([row.environment, row.agent, *sizes, *told, row.saturation or "–"])
    note = (
        "The null of empowerment shuffles actions within inputs 200 times: mean and 95 % of the shuffles. The excess "
        "is the value minus that mean; it is not identifiable where visits are too few to be near the truth."
    )
    return f"<h3>Empowerment and its null</h3>{_table(head, body)}<p>{escape(note)}</p>" if body else ""


def _equal_table(study: Study) -> str:
    """Draw entropy and information gain at equal numbers of transitions, at which agents can be compared."""
    rows = [row for row in study.rows if row.equal]
    if not rows:
        return ""
    names = [name for name in NAMES if any(name in row.equal for row in rows)]
    head = ("environment", "agent", "transitions", *(WORDS[name] for name in names))
    body = [
        [row.environment, row.agent, f"{row.equal_transitions:,}", *(_number(row.equal.get(name)) for name in names)]
        for row in rows
    ]
    note = "Entropy and information gain depend on the number of transitions. Compare agents here, also with random."
    return f"<h3>At equal numbers of transitions</h3>{_table(head, body)}<p>{escape(note)}</p>"


def _paper_table(study: Study) -> str:
    """Draw our correlations beside those of the paper's Table 1."""
    head = ("", "with task reward", "paper", "with human similarity", "paper")
    body = []
    for name in COLUMNS:
        cells = [WORDS[name]]
        for yardstick, key in ((REWARD, "reward"), (SIMILARITY, SIMILARITY)):
            reference = published().correlations[key].get(name)
            cells += [_with_interval(find(study, name, yardstick)), "–" if reference is None else f"{reference:.2f}"]
        body.append(cells)
    return _table(head, body)


def _correlation_table(study: Study) -> str:
    head = ("x", "y", "kind", "over", "n", "r", "p", "without one agent")
    body = [
        (
            WORDS[line.x],
            WORDS[line.y],
            line.kind,
            line.environment or line.pooling,
            str(line.n),
            _with_interval(line),
            _number(line.p),
            f"{line.without_one[0]:.2f} to {line.without_one[1]:.2f}" if line.without_one else "–",
        )
        for line in study.correlations
    ]
    return f"<details><summary>All correlations</summary>{_table(head, body)}</details>"


def _with_interval(line: Correlation | None) -> str:
    if line is None or line.r is None:
        return "–"
    interval = line.fisher or line.bootstrap
    return f"{line.r:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return draw_table(top, ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in body))


def draw_scatter(title: str, x: str, y: str, dots: Sequence[Dot]) -> str:
    """Draw agents as points, one colour per environment."""
    width, height, left, bottom, top, right = 360, 270, 52, 40, 14, 96
    groups = sorted({dot.group for dot in dots})
    across = _fit([dot.x for dot in dots], left, width - right)
    up = _fit([dot.y for dot in dots], height - bottom, top)
    parts = [*_axes(across, up, x, y, height, bottom)]
    for dot in dots:
        colour = PALETTE[groups.index(dot.group) % len(PALETTE)]
        name = escape(f"{dot.label}, {dot.group}: {dot.x:.4g}, {dot.y:.4g}")
        parts.append(
            f'<circle cx="{across.at(dot.x):.1f}" cy="{up.at(dot.y):.1f}" r="4" fill="{colour}" fill-opacity=".8">'
            f"<title>{name}</title></circle>"
        )
    for number, group in enumerate(groups):
        line = top + 8 + 15 * number
        parts.append(f'<circle cx="{width - right + 12}" cy="{line}" r="4" fill="{PALETTE[number % len(PALETTE)]}"/>')
        parts.append(_text(width - right + 20, line + 4, group))
    return _svg(title, width, height, parts)


def draw_lives(title: str, rows: Sequence[StudyRow], name: str) -> str:
    """Draw a value of each life as a dot, a panel per environment and a line per agent, with means and intervals."""
    environments = list(dict.fromkeys(row.environment for row in rows))
    line, left, width, gap = 20, 120, 150, 24
    most = max(sum(row.environment == place for row in rows) for place in environments)
    parts = []
    for number, place in enumerate(environments):
        mine = [row for row in rows if row.environment == place]
        start = left + number * (width + gap)
        across = _fit(_shown_range(mine, name), start, start + width)
        parts.append(_text(start + width / 2, 12, place, "middle"))
        parts += [_text(across.at(mark), 40 + line * most, f"{mark:.3g}", "middle") for mark in across.marks()[::2]]
        for at, row in enumerate(mine):
            parts += _lives_of(row, name, across, 32 + line * at)
            parts += [_text(left - 8, 36 + line * at, row.agent.replace("_", " "), "end")] if not number else []
    return _svg(title, left + len(environments) * (width + gap), 50 + line * most, parts)


def _shown_range(rows: Sequence[StudyRow], name: str) -> list[float]:
    """Return the ends of a panel: all lives, and of intervals as much as is half as wide again on each side."""
    lives = [life[name] for row in rows for life in row.lives if name in life]
    low, high = min(lives, default=0.0), max(lives, default=1.0)
    room = (high - low) / 2
    limits = [limit for row in rows for limit in row.intervals.get(name, ())]
    return [*lives, *(min(max(limit, low - room), high + room) for limit in limits)]


def _lives_of(row: StudyRow, name: str, across: _Scale, y: float) -> list[str]:
    parts = [_line((across.start, y), (across.stop, y), 0.12)]
    if name in row.intervals:
        low, high = (min(max(across.at(limit), across.start), across.stop) for limit in row.intervals[name])
        parts.append(_line((low, y), (high, y), 0.9))
    for life in row.lives:
        if name in life:
            parts.append(
                f'<circle cx="{across.at(life[name]):.1f}" cy="{y:.1f}" r="3" fill="{BLUE}" fill-opacity=".55"/>'
            )
    mean = row.values.get(name)
    return parts if mean is None else [*parts, _rect((across.at(mean) - 1, y - 6), (2.5, 12), ORANGE, 1.0)]


def draw_heat_map(title: str, names: Sequence[str], values: Sequence[Sequence[float | None]]) -> str:
    """Draw correlations as coloured cells: blue below zero, orange above, grey where not defined."""
    cell, left, top = 46, 150, 100
    width, height = left + cell * len(names) + 50, top + cell * len(names) + 10  # the last name leans to the right
    parts = []
    for row, name in enumerate(names):
        parts.append(_text(left - 8, top + cell * row + cell / 2 + 4, name, "end"))
        place = left + cell * row + cell / 2
        parts.append(
            f'<text x="{place}" y="{top - 8}" fill="{INK}" font-size="11" '
            f'transform="rotate(-40 {place} {top - 8})">{escape(name)}</text>'
        )
        for column, value in enumerate(values[row]):
            parts += _cell(left + cell * column, top + cell * row, cell, value)
    return _svg(title, width, height, parts)


def draw_bars(title: str, bars: Sequence[Bar]) -> str:
    """Draw values from -1 to 1 with intervals; a diamond marks what the paper found."""
    width, left, right, line = 460, 150, 20, 26
    height = 30 + line * len(bars)
    scale = _Scale(-1.0, 1.0, left, width - right)
    parts = []
    for mark in (-1, 0, 1):
        at = scale.at(mark)
        parts.append(_line((at, 6), (at, height - 22), 0.6 if mark == 0 else 0.15))
        parts.append(_text(at, height - 8, str(mark), "middle"))
    for number, bar in enumerate(bars):
        parts += _bar(bar, scale, 18 + line * number, left)
    return _svg(title, width, height, parts)


class _Scale(NamedTuple):
    """Numbers to drawing units."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, value: float) -> float:
        return self.start + (self.stop - self.start) * (value - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        return [self.low + (self.high - self.low) * part for part in (0.1, 0.5, 0.9)]


def _fit(values: Sequence[float], start: float, stop: float) -> _Scale:
    """Return a scale with a margin on both sides of the values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return _Scale(low - margin, high + margin, start, stop)


def _axes(across: _Scale, up: _Scale, x: str, y: str, height: int, bottom: int) -> list[str]:
    floor = height - bottom
    corner = (across.start, floor)
    parts = [_line(corner, (across.stop, floor), 0.5), _line(corner, (across.start, up.stop), 0.5)]
    parts += [_text(across.at(mark), floor + 14, f"{mark:.3g}", "middle") for mark in across.marks()]
    parts += [_text(across.start - 5, up.at(mark) + 4, f"{mark:.2g}", "end") for mark in up.marks()]
    parts.append(_text((across.start + across.stop) / 2, height - 8, x, "middle"))
    middle = (floor + up.stop) / 2
    parts.append(
        f'<text x="11" y="{middle}" fill="{INK}" font-size="11" text-anchor="middle" '
        f'transform="rotate(-90 11 {middle})">{escape(y)}</text>'
    )
    return parts


def _cell(x: float, y: float, size: int, value: float | None) -> list[str]:
    if value is None:
        return [_rect((x, y), (size - 2, size - 2), INK, 0.06)]
    colour = ORANGE if value >= 0 else BLUE
    return [
        _rect((x, y), (size - 2, size - 2), colour, min(1.0, abs(value)) * 0.85),
        _text(x + size / 2 - 1, y + size / 2 + 4, f"{value:.2f}", "middle"),
    ]


def _bar(bar: Bar, scale: _Scale, y: float, left: int) -> list[str]:
    zero, end = scale.at(0.0), scale.at(bar.value)
    parts = [_text(left - 8, y + 4, bar.label, "end")]
    parts.append(_rect((min(zero, end), y - 6), (abs(end - zero), 12), BLUE, 0.5))
    if bar.low is not None and bar.high is not None:
        parts.append(_line((scale.at(bar.low), y), (scale.at(bar.high), y), 1.0))
    if bar.reference is not None:
        at = scale.at(bar.reference)
        corners = " ".join(f"{at + dx:.1f},{y + dy:.1f}" for dx, dy in ((-5, 0), (0, -5), (5, 0), (0, 5)))
        title = f"<title>paper: {bar.reference:.2f}</title>"
        parts.append(f'<polygon points="{corners}" fill="{ORANGE}">{title}</polygon>')
    return parts


def _line(start: tuple[float, float], end: tuple[float, float], opacity: float) -> str:
    place = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {place} stroke="{INK}" stroke-opacity="{opacity:g}"/>'


def _rect(corner: tuple[float, float], size: tuple[float, float], colour: str, opacity: float) -> str:
    place = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    return f'<rect {place} fill="{colour}" fill-opacity="{opacity:.2f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="11" style="fill:{INK}">{escape(text)}</text>'


def _svg(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif"><title>{escape(title)}</title>{body}</svg>'
    )
