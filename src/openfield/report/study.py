"""A study of objectives as one HTML page and a folder of SVG drawings. The page loads nothing.

Every drawing is also a file of its own, so it carries its colours with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from openfield.objectives.evaluation import NAMES
from openfield.objectives.measures.correlations import Correlation
from openfield.objectives.study.manifest import published_values
from openfield.objectives.study.study import REWARD, SIMILARITY, Study, StudyRow
from openfield.report.drawing import draw_bars, draw_heat_map, draw_lives, draw_scatter
from openfield.report.figures import Bar, Dot
from openfield.report.objectives import NULL_TITLES, SIZES, row_null, study_record
from openfield.report.page import write_page
from openfield.report.render import render

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


class Drawing(NamedTuple):
    """A drawing, the name of its file, and its caption."""

    name: str
    title: str
    svg: Markup


class StudyTable(NamedTuple):
    """A table of a study, as text."""

    title: str
    """Its heading, if it needs one."""
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """How it is read."""
    folded: bool = False


class StudyPage(NamedTuple):
    """What the page of a study shows."""

    title: str
    facts: dict[str, str]
    problems: list[str]
    """What could not be computed, and why."""
    objectives: list[StudyTable]
    correlations: list[StudyTable]
    drawings: Sequence[Drawing]
    reading: str


def write_study(study: Study, folder: Path, title: str, page: Path | None = None) -> Path:
    """Write a page, `study.json` and one SVG per drawing, and return the path of the page.

    Args:
        study: The study.
        folder: The folder of everything but a page that is named.
        title: The heading of the page.
        page: The page [`study.html` in the folder].
    """
    drawings = list(draw_study(study))
    for drawing in drawings:
        write_page(folder / f"{drawing.name}.svg", drawing.svg)
    record = msgspec.json.format(msgspec.json.encode(study_record(study)), indent=1)
    write_page(folder / "study.json", record.decode())
    page = page or folder / "study.html"
    write_page(page, render_study(study, title, drawings))
    return page


def render_study(study: Study, title: str, drawings: Sequence[Drawing] | None = None) -> str:
    """Return the page as text."""
    environments = {row.environment for row in study.rows}
    counts = {"environments": len(environments), "rows": len(study.rows), "correlations": len(study.correlations)}
    facts = {name: str(count) for name, count in counts.items()} | study.facts
    problems = [f"{row.environment} / {row.agent}: {problem}" for row in study.rows for problem in row.problems]
    correlated = [_paper_table(study), _correlation_table(study)] if study.correlations else []
    shown = list(draw_study(study)) if drawings is None else drawings
    measured = [table for table in (_rows_table(study), _counts_table(study), _equal_table(study)) if table.rows]
    data = StudyPage(title, facts, problems + _list_reasons(study), measured, correlated, shown, explain_study(study))
    return render("study.html", data)


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
    reference = published_values().correlations["reward" if yardstick == REWARD else SIMILARITY]
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


def _list_reasons(study: Study) -> list[str]:
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


def _rows_table(study: Study) -> StudyTable:
    if _is_live(study):
        head = ("environment", "agent", "lives", *(WORDS[name] for name in COLUMNS))
        lines = [
            [row.environment, row.agent, str(row.seeds), *(_with_limits(row, name) for name in COLUMNS)]
            for row in study.rows
        ]
        return StudyTable("", head, lines)
    head = ("environment", "agent", *(WORDS[name] for name in COLUMNS), "rarefied", "coverage")
    body = []
    for row in study.rows:
        rarefied = row.rarefied[-1].jaccard if row.rarefied else None
        numbers = (*(row.values.get(name) for name in COLUMNS), rarefied, row.coverage)
        body.append([row.environment, row.agent, *map(_number, numbers)])
    return StudyTable("", head, body)


def _with_limits(row: StudyRow, name: str) -> str:
    low, high = row.intervals.get(name, (None, None))
    return _number(row.values.get(name)) + (
        "" if low is None else f" [{_number(low)},\N{NO-BREAK SPACE}{_number(high)}]"
    )


def _counts_table(study: Study) -> StudyTable:
    """Return how much was counted, and empowerment beside its permutation null."""
    head = ("environment", "agent", "transitions", *SIZES.values(), *NULL_TITLES, "saturation")
    body = []
    for row in study.rows:
        if row.transitions is not None:
            sizes = [f"{row.transitions:,}", *(f"{row.distinct.get(size, 0):,}" for size in SIZES)]
            null = row_null(row)
            nulls = [null.get(title, "–") for title in NULL_TITLES]
            body.append([row.environment, row.agent, *sizes, *nulls, row.saturation or "–"])
    note = (
        "The null of empowerment shuffles actions within inputs 200 times: mean and 95 % of the shuffles. The excess "
        "is the value minus that mean; it is not identifiable where visits are too few to be near the truth."
    )
    return StudyTable("Empowerment and its null", head, body, note)


def _equal_table(study: Study) -> StudyTable:
    """Return entropy and information gain at equal numbers of transitions, at which agents can be compared."""
    rows = [row for row in study.rows if row.equal]
    names = [name for name in NAMES if any(name in row.equal for row in rows)]
    head = ("environment", "agent", "transitions", *(WORDS[name] for name in names))
    body = [
        [row.environment, row.agent, f"{row.equal_transitions:,}", *(_number(row.equal.get(name)) for name in names)]
        for row in rows
    ]
    note = "Entropy and information gain depend on the number of transitions. Compare agents here, also with random."
    return StudyTable("At equal numbers of transitions", head, body, note)


def _paper_table(study: Study) -> StudyTable:
    """Return our correlations beside those of the paper's Table 1."""
    head = ("", "with task reward", "paper", "with human similarity", "paper")
    body = []
    for name in COLUMNS:
        cells = [WORDS[name]]
        for yardstick, key in ((REWARD, "reward"), (SIMILARITY, SIMILARITY)):
            reference = published_values().correlations[key].get(name)
            cells += [_with_interval(find(study, name, yardstick)), "–" if reference is None else f"{reference:.2f}"]
        body.append(cells)
    return StudyTable("", head, body, "" if _is_live(study) else f"{RULES[study.compat]} {PAPER_RULE}")


def _correlation_table(study: Study) -> StudyTable:
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
    return StudyTable("All correlations", head, body, folded=True)


def _with_interval(line: Correlation | None) -> str:
    if line is None or line.r is None:
        return "–"
    interval = line.fisher or line.bootstrap
    return f"{line.r:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
