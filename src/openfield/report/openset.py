"""Figures of trials about samples: belief over the stream, ROC and OSCR, scores, confusion, tables.

Stands in report: cells -> answers -> drawings. Everything is read from the details that episodes carry, whatever the
domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from openfield.journal.reader import CellRecord
from openfield.metrics.openset import measures
from openfield.metrics.openset.cells import Answers, read_answers
from openfield.metrics.openset.compat import first_of
from openfield.metrics.programme import TestFacts, make_facts, program_measures
from openfield.report.chart import MAX_POINTS, Frame, draw_grid, draw_line, wrap_svg
from openfield.report.tables import Link, draw_table, keep_plain

MAX_CLASSES, MAX_TESTS, BINS = 12, 24, 24
"""Larger confusions and longer lists are left to the export."""
COLUMNS = ("red light", "declared", "accuracy before", "after", "unanswered")
Played = Mapping[str, Sequence[CellRecord]]
Tests = Sequence[tuple[CellRecord, Answers]]
"""The cells of an agent that are about samples, with its answers."""


def draw_openset(played: Played, baseline: str | None = None, link: Link = keep_plain) -> str:
    """Draw all figures of a scenario, agent by agent; nothing if its cells are not about samples.

    Args:
        played: The scored cells of each agent.
        baseline: The agent that M3 to M6 are measured against, by default the agent `baseline`, or else the first.
        link: Links each number and each plot to its cells.
    """
    known = {
        agent: found
        for agent, cells in played.items()
        if (found := [(cell, answers) for cell in cells if (answers := read_answers(cell))])
    }
    if not known:
        return ""
    panels = "".join(_draw_agent(agent, found, link) for agent, found in known.items())
    against = next((name for name in (baseline, "baseline") if name in known), next(iter(known)))
    tables = "".join(_draw_tests(agent, found, link) for agent, found in known.items())
    return f"<h3>Sample by sample</h3>{panels}{_draw_programme(known, against, link)}{tables}"


def _draw_agent(agent: str, found: Tests, link: Link) -> str:
    """Draw the five figures of one agent, over all its tests."""
    cells, tests = [cell for cell, _ in found], [answers for _, answers in found]
    names = ("label", "guess", "named", "confidence")
    joined = [np.concatenate([getattr(test, name) for test in tests]) for name in names]
    label, guess, named, conf = (column[~np.isnan(joined[-1])] for column in joined)
    figures = {"P(world changed) over the stream; the line is the red light, the dashes the threshold": _stream(tests)}
    if len(label) and (label < 0).any() and (label >= 0).any():
        auroc = link(f"{measures.auroc(conf, label):.3f}", cells)
        oscr = link(f"{measures.oscr(guess, conf, label):.3f}", cells)
        roc, correct = measures.roc_curve(conf, label), measures.oscr_curve(guess, conf, label)
        figures |= {
            f"ROC of unknown samples found, AUROC {auroc}": _curve(*roc, "known samples alarmed"),
            f"Known samples let in and named rightly, OSCR {oscr}": _curve(*correct, "unknown samples let in"),
            "How known samples look: known solid, unknown dashed": _histogram(conf, label),
        }
    body = "".join(
        f"<figure><figcaption><small>{caption}</small></figcaption>{link(drawing, cells, 'plot')}</figure>"
        for caption, drawing in figures.items()
    )
    confusion = _draw_confusion(named, label, lambda number: link(number, cells))
    return f'<h4>{escape(agent)}</h4><div class="panels">{body}{confusion}</div>'


def _stream(tests: Sequence[Answers]) -> str:
    """Draw the mean belief, samples counted from the onset."""
    onsets = [first_of(test.novel) for test in tests]
    starts = [0 if onset is None else -onset for onset in onsets]
    ends = [start + len(test.world) for start, test in zip(starts, tests, strict=True)]
    first, last = min(starts), max(ends)
    step = max(1, (last - first) // MAX_POINTS)
    total, count = np.zeros(last - first), np.zeros(last - first)
    for start, test in zip(starts, tests, strict=True):
        at = slice(start - first, start - first + len(test.world))
        total[at] += np.nan_to_num(test.world)
        count[at] += ~np.isnan(test.world)
    mean = total / np.maximum(count, 1)
    frame = _frame(first, last)
    points = [(first + at, float(mean[at : at + step].mean())) for at in range(0, len(mean), step)]
    shown = any(onset is not None for onset in onsets)
    light = f'<path class="o" d="M{frame.x(0)} {frame.y(1) - 5}V{frame.y(0)}"/>' if shown else ""
    threshold = "".join(
        f'<path class="s" stroke-dasharray="2 4" d="M{frame.left} {frame.y(at)}H{frame.x(last)}"/>'
        for at in sorted({test.threshold for test in tests})
    )
    axes = _axes(frame, f"{first}", "samples from the onset" if shown else "samples", f"{last}")
    return wrap_svg(frame, "belief over the stream", axes + light + threshold + draw_line("b", frame, points))


def _frame(first: int, last: int) -> Frame:
    return Frame(first, last, 380, 200, right=14, bottom=28)


def _curve(x: NDArray[np.float64], y: NDArray[np.float64], across: str) -> str:
    frame = _frame(0, 1)
    chosen = np.unique(np.linspace(0, len(x) - 1, MAX_POINTS).astype(int))
    points = [(float(x[at]), float(y[at])) for at in chosen]
    return wrap_svg(frame, "curve", _axes(frame, "0", across, "1") + draw_line("p", frame, points))


def _histogram(conf: NDArray[np.float64], label: NDArray[np.float64]) -> str:
    """Draw two outlines on a common scale."""
    edges = np.linspace(conf.min(), max(conf.max(), conf.min() + 1e-9), BINS + 1)
    parts = [np.histogram(conf[label >= 0], edges)[0], np.histogram(conf[label < 0], edges)[0]]
    shares = [part / max(part.sum(), 1) for part in parts]
    top = max(float(share.max()) for share in shares) or 1.0
    frame = _frame(0, BINS - 1)
    axes = _axes(frame, f"{edges[0]:.2g}", "confidence, each outline to the common highest", f"{edges[-1]:.2g}")
    lines = "".join(
        draw_line(kind, frame, [(at, float(v) / top) for at, v in enumerate(share)])
        for kind, share in zip("pb", shares, strict=True)
    )
    return wrap_svg(frame, "histogram of scores", axes + lines)


def _axes(frame: Frame, left: str, across: str, right: str) -> str:
    """Draw the grid, and the ends and the name of the other axis below it."""
    end = frame.x(frame.last)
    places = (("", frame.left, left), ("m", (frame.left + end) // 2, across), ("e", end, right))
    texts = (f'<text class="t {at}" x="{x}" y="{frame.y(0) + 16}">{escape(text)}</text>' for at, x, text in places)
    return draw_grid(frame) + "".join(texts)


def _draw_confusion(named: NDArray[np.float64], label: NDArray[np.float64], link_number: Callable[[str], str]) -> str:
    if not len(label) or max(named.max(), label.max()) > MAX_CLASSES:
        return ""
    table = measures.confusion(named, label, int(max(named.max(), label.max())) + 1)
    used = np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))
    names = ["unknown" if at == len(table) - 1 else str(at) for at in used]
    rows = (
        (name, [link_number(str(table[row, column])) for column in used]) for name, row in zip(names, used, strict=True)
    )
    caption = "<figcaption><small>True classes in rows, named ones in columns</small></figcaption>"
    return f'<figure class="tight">{caption}{_number_table("", names, rows)}</figure>'


def _draw_programme(known: Mapping[str, Tests], baseline: str, link: Link) -> str:
    """Draw M1 to M6; those that need a baseline are measured against that agent."""
    base = {(cell.trial.id, cell.repeat): answers for cell, answers in known[baseline]}
    given = any(cell.trial.red_light for found in known.values() for cell, _ in found)
    rows, names = list[str](), list[str]()
    for agent, found in known.items():
        rivals = base if agent != baseline else {}
        facts = [make_test_facts(answers, rivals.get((cell.trial.id, cell.repeat))) for cell, answers in found]
        numbers = program_measures(facts, given)
        names = list(numbers)
        own = [cell for cell, _ in found]
        cells = "".join(f"<td>{link(escape(str(value)), own)}</td>" for value in numbers.values())
        rows.append(f"<th>{escape(agent)}</th>{cells}")
    head = "".join(f"<th>{name}</th>" for name in ("", *names))
    against = f"M3 to M6 are told against {escape(baseline)}; name another: report --baseline AGENT."
    note = (f"<p><small>{against}</small></p>" if len(known) > 1 else "") + _say_unanswered(known, link)
    return f"<h4>The programme's measures</h4>{note}{draw_table(head, rows)}"


def _say_unanswered(known: Mapping[str, Tests], link: Link) -> str:
    """Say how many samples agents left unanswered, which counts neither for nor against them."""
    left = []
    for agent, found in known.items():
        missing = sum(int((~answers.answered).sum()) for _, answers in found)
        share = f"{missing:,} of {sum(len(answers.rank) for _, answers in found):,}"
        if missing:
            left.append(f"{link(share, [cell for cell, _ in found])} by {escape(agent)}")
    told = f"Samples left unanswered, which are not counted: {'; '.join(left)}."
    return f"<p><small>{told}</small></p>" if left else ""


def make_test_facts(answers: Answers, baseline: Answers | None = None) -> TestFacts:
    """Return what the programme's measures need to know of a recorded test."""
    return make_facts(answers.novel, answers.declared, answers.hits, None if baseline is None else baseline.hits)


def _draw_tests(agent: str, found: Tests, link: Link) -> str:
    """Draw a table with one line for each test."""
    rows = []
    for cell, answers in found[:MAX_TESTS]:
        facts = make_test_facts(answers)
        onset = facts.onset
        numbers = [
            "-" if onset is None else str(onset),
            "-" if facts.detection is None else str(facts.detection),
            _share(answers.hits[:onset]),
            "-" if onset is None else _share(answers.hits[onset:]),
            str(int((~answers.answered).sum())),
        ]
        name = next((file.removesuffix("_single_df.csv") for file in cell.trial.files), cell.trial.id)
        rows.append((escape(name), [link(number, [cell]) for number in numbers]))
    more = [cell for cell, _ in found[MAX_TESTS:]]
    left = f" <small>{link(f'{len(more)} more', more)} are left out</small>" if more else ""
    summary = f"<b>{escape(agent)}</b>, test by test{left}"
    return f"<details><summary>{summary}</summary>{_number_table('test', COLUMNS, rows)}</details>"


def _share(hits: NDArray[np.float64]) -> str:
    """Return the share of hits among the answered samples."""
    answered = hits[~np.isnan(hits)]
    return f"{answered.mean():.3f}" if len(answered) else "-"


def _number_table(corner: str, names: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Draw a table of numbers whose rows have a name each."""
    head = f"<th>{corner}</th>" + "".join(f'<th class="num">{name}</th>' for name in names)
    cells = (f"<th>{name}</th>" + "".join(f'<td class="num">{text}</td>' for text in row) for name, row in rows)
    return draw_table(head, cells)
