"""A study of objectives as one HTML page and a folder of SVG drawings. The page loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import NamedTuple

import msgspec

from openfield.atomic import replacing
from openfield.objectives.evaluation import NAMES
from openfield.objectives.measures.correlations import Correlation
from openfield.objectives.study.manifest import published
from openfield.objectives.study.study import REWARD, SIMILARITY, Study, StudyRow
from openfield.report.objectives import study_record
from openfield.report.study_plots import Bar, Dot, draw_bars, draw_heat_map, draw_scatter

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
    "the other. "
    "Correlations come with Fisher's 95 % interval, or a bootstrap over agents where Fisher's does not apply."
)


class Drawing(NamedTuple):
    """A drawing, the name of its file, and what it shows."""

    name: str
    title: str
    svg: str


def write_study(study: Study, folder: Path, title: str) -> Path:
    """Write `study.html`, `study.json` and one SVG per drawing; returns the page."""
    drawings = list(draw_study(study))
    for drawing in drawings:
        with replacing(folder / f"{drawing.name}.svg") as draft:
            draft.write_text(drawing.svg, encoding="utf-8")
    with replacing(folder / "study.json") as draft:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(study_record(study)), indent=1))
    page = folder / "study.html"
    with replacing(page) as draft:
        draft.write_text(render_study(study, title, drawings), encoding="utf-8")
    return page


def render_study(study: Study, title: str, drawings: Sequence[Drawing] | None = None) -> str:
    """Return the page as text."""
    shown = list(draw_study(study)) if drawings is None else drawings
    environments = sorted({row.environment for row in study.rows})
    facts = {"environments": len(environments), "rows": len(study.rows), "correlations": len(study.correlations)}
    report = resources.files("openfield.report")
    return Template(report.joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(title),
        style=report.joinpath("page.css").read_text("utf-8"),
        facts='<dl class="facts">'
        + "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items())
        + "</dl>",
        body="\n".join(_sections(study, shown)),
        reading=f"<p>{escape(READING)}</p>",
    )


def draw_study(study: Study) -> Iterator[Drawing]:
    """Draw a study: a heat map, bars against reward and human similarity, a scatter plot per objective."""
    title = "Correlations, z-scored within environments"
    yield Drawing("correlations", title, draw_heat_map(title, _words(COLUMNS), _matrix(study)))
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


def find(study: Study, x: str, y: str, kind: str = "pearson", pooling: str = "z-scored") -> Correlation | None:
    """Return one correlation of the study."""
    for line in study.correlations:
        if {line.x, line.y} == {x, y} and line.kind == kind and line.pooling == pooling:
            return line
    return None


def interval_of(line: Correlation) -> tuple[float, float] | None:
    """Return Fisher's interval, or the bootstrap's."""
    return line.fisher or line.bootstrap


def _words(names: Sequence[str]) -> list[str]:
    return [WORDS[name] for name in names]


def _matrix(study: Study) -> list[list[float | None]]:
    def value(x: str, y: str) -> float | None:
        if x == y:
            return 1.0
        line = find(study, x, y)
        return line.r if line else None

    return [[value(x, y) for y in COLUMNS] for x in COLUMNS]


def _bars(study: Study, yardstick: str) -> Iterator[Bar]:
    reference = published().correlations["reward" if yardstick == REWARD else SIMILARITY]
    for name in COLUMNS:
        line = find(study, name, yardstick) if name != yardstick else None
        if line is not None and line.r is not None:
            low, high = interval_of(line) or (None, None)
            yield Bar(WORDS[name], line.r, low, high, reference.get(name))


def _dots(study: Study, name: str) -> Iterator[Dot]:
    for row in study.rows:
        x, y = row.values.get(name), row.values.get(SIMILARITY)
        if x is not None and y is not None:
            yield Dot(x, y, row.agent, row.environment)


def _sections(study: Study, drawings: Sequence[Drawing]) -> Iterator[str]:
    problems = [f"{row.environment} / {row.agent}: {problem}" for row in study.rows for problem in row.problems]
    problems += [
        f"{row.environment} / {row.agent}: {WORDS[name]} {reason}"
        for row in study.rows
        for name, reason in row.reasons.items()
    ]
    if problems:
        items = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
        yield f'<section class="alert"><h2>Not everything could be computed</h2><ul>{items}</ul></section>'
    yield f"<section><h2>Objectives</h2>{_rows_table(study.rows)}</section>"
    if study.correlations:
        yield f"<section><h2>Correlations</h2>{_paper_table(study)}{_correlation_table(study)}</section>"
    figures = "".join(
        f"<figure><figcaption>{escape(drawing.title)}</figcaption>{drawing.svg}</figure>" for drawing in drawings
    )
    yield f'<section><h2>Drawings</h2><div class="panels">{figures}</div></section>'


def _rows_table(rows: Sequence[StudyRow]) -> str:
    head = ("environment", "agent", *_words(COLUMNS), "rarefied", "coverage")
    body = [
        (
            row.environment,
            row.agent,
            *(_number(row.values.get(name)) for name in COLUMNS),
            _number(row.rarefied[-1].jaccard if row.rarefied else None),
            _number(row.coverage),
        )
        for row in rows
    ]
    return _table(head, body)


def _paper_table(study: Study) -> str:
    """Ours beside the paper's Table 1."""
    head = ("", "with task reward", "paper", "with human similarity", "paper")
    body = []
    for name in COLUMNS:
        cells = [WORDS[name]]
        for yardstick, key in ((REWARD, "reward"), (SIMILARITY, SIMILARITY)):
            line = find(study, name, yardstick) if name != yardstick else None
            reference = published().correlations[key].get(name)
            cells += [_with_interval(line), f"{reference:.2f}" if reference is not None else "–"]
        body.append(tuple(cells))
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
    interval = interval_of(line)
    return f"{line.r:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'
