"""Figures of trials about samples: belief over the stream, ROC and OSCR, scores, confusion, tables.

Stands in report: cells -> answers -> figures. Everything is read from the details that episodes carry, whatever the
domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.journal.reader import CellRecord
from openfield.metrics.openset import measures
from openfield.metrics.openset.cells import Answers, read_sample_answers
from openfield.metrics.openset.compat import first_of
from openfield.metrics.programme import TestFacts, make_facts, program_measures
from openfield.report.figures import Plot, PlotLine, TrialLinks
from openfield.report.figures.curves import MAX_POINTS

MAX_CLASSES, MAX_TESTS, BINS = 12, 24, 24
"""Larger confusions and longer lists are left to the export."""
COLUMNS = ("red light", "declared", "accuracy before", "after", "unanswered")
Played = Mapping[str, Sequence[CellRecord]]
Tests = Sequence[tuple[CellRecord, Answers]]
"""The cells of an agent that are about samples, with its answers."""


class SampleTest(msgspec.Struct, frozen=True):
    """One test in the table of an agent."""

    name: str
    address: str
    numbers: list[str]


class AgentSamples(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one agent to samples, over all its tests."""

    agent: str
    address: str
    """The trials that its numbers were made of."""
    plots: list[tuple[str, str, Plot]]
    """What each plot shows, the area below its curve if it has one, and the plot."""
    classes: list[str]
    confusion: list[list[int]]
    """True classes in rows, named ones in columns; empty if there are too many."""
    measures: dict[str, str]
    """The programme's measures M1 to M6."""
    unanswered: int
    samples: int
    tests: list[SampleTest]
    left_out: int
    left_out_address: str
    """How many tests are not listed, and where they are."""


class SampleFigures(msgspec.Struct, frozen=True):
    """The figures of a scenario about samples, agent by agent."""

    agents: list[AgentSamples]
    against: str
    """The agent that M3 to M6 are measured against."""
    columns: tuple[str, ...] = COLUMNS
    """The numbers of each test."""


def trace_samples(played: Played, links: TrialLinks, baseline: str | None = None) -> SampleFigures | None:
    """Return the figures of a scenario; None if its cells are not about samples.

    Args:
        played: The scored cells of each agent.
        links: Finds the addresses of cells.
        baseline: The agent that M3 to M6 are measured against, by default the agent `baseline`, or else the first.
    """
    known = {
        agent: found
        for agent, cells in played.items()
        if (found := [(cell, answers) for cell in cells if (answers := read_sample_answers(cell))])
    }
    if not known:
        return None
    against = next((name for name in (baseline, "baseline") if name in known), next(iter(known)))
    return SampleFigures([_trace_agent(agent, known, against, links) for agent in known], against)


def _trace_agent(agent: str, known: Mapping[str, Tests], against: str, links: TrialLinks) -> AgentSamples:
    found = known[agent]
    cells, tests = [cell for cell, _ in found], [answers for _, answers in found]
    address = links.find(cells)
    names = ("label", "guess", "named", "confidence")
    joined = [np.concatenate([getattr(test, name) for test in tests]) for name in names]
    label, guess, named, conf = (column[~np.isnan(joined[-1])] for column in joined)
    rivals = {(cell.trial.id, cell.repeat): answers for cell, answers in known[against]} if agent != against else {}
    facts = [make_test_facts(answers, rivals.get((cell.trial.id, cell.repeat))) for cell, answers in found]
    given = any(cell.trial.red_light for tests in known.values() for cell, _ in tests)
    more = cells[MAX_TESTS:]
    classes, confusion = _count_confusion(named, label)
    return AgentSamples(
        agent=agent,
        address=address,
        plots=list(_list_plots(tests, guess, conf, label, address)),
        classes=classes,
        confusion=confusion,
        measures={name: str(value) for name, value in program_measures(facts, given).items()},
        unanswered=sum(int((~answers.answered).sum()) for answers in tests),
        samples=sum(len(answers.rank) for answers in tests),
        tests=[_list_numbers(cell, answers, links) for cell, answers in found[:MAX_TESTS]],
        left_out=len(more),
        left_out_address=links.find(more) if more else "",
    )


def _list_plots(
    tests: Sequence[Answers],
    guess: NDArray[np.float64],
    conf: NDArray[np.float64],
    label: NDArray[np.float64],
    address: str,
) -> Iterator[tuple[str, str, Plot]]:
    stream = "P(world changed) over the stream; the line is the red light, the dashes the threshold"
    yield stream, "", _trace_stream(tests, address)
    if len(label) and (label < 0).any() and (label >= 0).any():
        roc, correct = measures.roc_curve(conf, label), measures.oscr_curve(guess, conf, label)
        areas = measures.auroc(conf, label), measures.oscr(guess, conf, label)
        yield (
            "ROC of unknown samples found, AUROC",
            f"{areas[0]:.3f}",
            _trace_rates(*roc, "known samples alarmed", address),
        )
        named = "Known samples let in and named rightly, OSCR"
        yield named, f"{areas[1]:.3f}", _trace_rates(*correct, "unknown samples let in", address)
        yield "How known samples look: known solid, unknown dashed", "", _count_scores(conf, label, address)


def _trace_stream(tests: Sequence[Answers], address: str) -> Plot:
    """Return the mean belief, samples counted from the onset."""
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
    points = [(first + at, float(mean[at : at + step].mean())) for at in range(0, len(mean), step)]
    shown = any(onset is not None for onset in onsets)
    return Plot(
        title="belief over the stream",
        lines=[PlotLine("b", points)],
        first=first,
        last=last,
        ends=(str(first).replace("-", "−"), "samples from the onset" if shown else "samples", str(last)),
        onset=0 if shown else None,
        thresholds=sorted({test.threshold for test in tests}),
        address=address,
    )


def _trace_rates(x: NDArray[np.float64], y: NDArray[np.float64], across: str, address: str) -> Plot:
    chosen = np.unique(np.linspace(0, len(x) - 1, MAX_POINTS).astype(int))
    points = [(float(x[at]), float(y[at])) for at in chosen]
    return Plot(title="curve", lines=[PlotLine("p", points)], ends=("0", across, "1"), address=address)


def _count_scores(conf: NDArray[np.float64], label: NDArray[np.float64], address: str) -> Plot:
    """Return two outlines on a common scale: of known and of unknown samples."""
    edges = np.linspace(conf.min(), max(conf.max(), conf.min() + 1e-9), BINS + 1)
    parts = [np.histogram(conf[label >= 0], edges)[0], np.histogram(conf[label < 0], edges)[0]]
    shares = [part / max(part.sum(), 1) for part in parts]
    top = max(float(share.max()) for share in shares) or 1.0
    return Plot(
        title="histogram of scores",
        lines=[
            PlotLine(kind, [(at, float(value) / top) for at, value in enumerate(share)])
            for kind, share in zip("pb", shares, strict=True)
        ],
        last=BINS - 1,
        ends=(f"{edges[0]:.2g}", "confidence, each outline to the common highest", f"{edges[-1]:.2g}"),
        address=address,
    )


def _count_confusion(named: NDArray[np.float64], label: NDArray[np.float64]) -> tuple[list[str], list[list[int]]]:
    if not len(label) or max(named.max(), label.max()) > MAX_CLASSES:
        return [], []
    table = measures.confusion(named, label, int(max(named.max(), label.max())) + 1)
    used = np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))
    names = ["unknown" if at == len(table) - 1 else str(at) for at in used]
    return names, [[int(table[row, column]) for column in used] for row in used]


def make_test_facts(answers: Answers, baseline: Answers | None = None) -> TestFacts:
    """Return what the programme's measures need to know of a recorded test."""
    return make_facts(answers.novel, answers.declared, answers.hits, None if baseline is None else baseline.hits)


def _list_numbers(cell: CellRecord, answers: Answers, links: TrialLinks) -> SampleTest:
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
    return SampleTest(name, links.find([cell]), numbers)


def _share(hits: NDArray[np.float64]) -> str:
    """Return the share of hits among the answered samples."""
    answered = hits[~np.isnan(hits)]
    return f"{answered.mean():.3f}" if len(answered) else "-"
