"""The curves of the report page: a panel for each agent, and single trials below.

Stands in report: cells -> curves -> page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from openfield.journal.reader import CellRecord
from openfield.metrics.detection import measure_detection
from openfield.metrics.stretches import split
from openfield.metrics.summary import Group, score_trials
from openfield.report.chart import Curve, draw_panel, draw_trial, pick_evenly, trace_all

KEY = (
    ('<path class="p" d="M1 5h28"/>', "performance, mean over trials"),
    ('<path class="f" style="opacity:.5" d="M1 3h28M1 7h28"/>', "single trials"),
    ('<path class="b" d="M1 5h28"/>', "belief that the world has changed"),
)
ONSET = ('<path class="o" d="M15 0v10"/>', "onset, from which episodes are counted")
DETECTION = ('<path class="d" d="M15 1l4 7h-8z"/>', "first detection after the onset")
ALARM = ('<path class="d h" d="M15 1l4 7h-8z"/>', "false alarm")


def draw_curves(played: Sequence[tuple[Group, Sequence[CellRecord]]], faint: int, single: int) -> str:
    """Small multiples: every agent's trials in one panel, then some trials one by one."""
    known = [(group, cells) for group, cells in played if cells]
    if not known:
        return ""
    traced = [(group.agent, cells, trace_all(cells)) for group, cells in known]
    panels = "".join(_draw_panel(agent, cells, curves, faint) for agent, cells, curves in traced)
    singles = "".join(_draw_singles(agent, cells, curves, single) for agent, cells, curves in traced if single)
    key = _draw_key(*KEY, *([ONSET] if any(_has_onset(cells) for _, cells in known) else []))
    return f'<h3>Episode by episode</h3>{key}<div class="panels">{panels}</div>{singles}'


def _draw_key(*items: tuple[str, str]) -> str:
    drawn = (f'<li><svg viewBox="0 0 30 10">{mark}</svg>{meaning}</li>' for mark, meaning in items)
    return f'<ul class="key">{"".join(drawn)}</ul>'


def _draw_panel(agent: str, cells: Sequence[CellRecord], curves: Sequence[Curve], faint: int) -> str:
    """Trials that ended before their onset have no place on an axis that counts from it; the caption counts them."""
    onset = _has_onset(cells)
    aligned = [curve for cell, curve in zip(cells, curves, strict=True) if _has_onset([cell]) == onset]
    drawn, early = min(faint, len(aligned)), len(curves) - len(aligned)
    which = f"{drawn} trials" if drawn == len(aligned) else f"mean of {len(aligned)} trials, {drawn} of them drawn"
    which += f"; {early} more ended before the onset" if early else ""
    drawing = draw_panel(f"{agent}: performance and belief, {which}", aligned, faint, onset)
    return f"<figure><figcaption><b>{escape(agent)}</b> <small>{which}</small></figcaption>{drawing}</figure>"


def _draw_singles(agent: str, cells: Sequence[CellRecord], curves: Sequence[Curve], most: int) -> str:
    """Trials from the worst to the best, evenly picked where there are too many."""
    scores = [next(iter(score_trials([cell]).values()), -1.0) for cell in cells]
    ranked = sorted(range(len(cells)), key=lambda index: (scores[index], index))
    chosen = pick_evenly(ranked, most)
    shown = f"{len(chosen)} of {len(cells)}, evenly picked" if len(chosen) < len(cells) else f"all {len(cells)}"
    figures = "".join(_draw_single(cells[index], curves[index]) for index in chosen)
    summary = f"<b>{escape(agent)}</b>, trial by trial <small>from the worst to the best: {shown}</small>"
    marks = _draw_key(*([DETECTION] if _has_onset(cells) else []), ALARM)
    return f'<details><summary>{summary}</summary>{marks}<div class="trials">{figures}</div></details>'


def _draw_single(cell: CellRecord, curve: Curve) -> str:
    words = _say_trial(cell)
    name = f"<b>{escape(cell.trial.id)}</b>" + (f" repeat {cell.repeat}" if cell.repeat else "")
    drawing = draw_trial(words, curve, _has_onset([cell]))
    return f"<figure><figcaption>{name} · {escape(words)}</figcaption>{drawing}</figure>"


def _say_trial(cell: CellRecord) -> str:
    """How the trial went, in a few words."""
    found = measure_detection(cell)
    alarms, delay = found["alarms"], found["delay"]
    words = [] if found["detected"] is None else ["not detected" if delay is None else f"detected after {delay:.0f}"]
    words += [f"{alarms:.0f} false alarm{'s' if alarms > 1 else ''}"] if alarms else []
    score = next(iter(score_trials([cell]).values()), None)
    words += [] if score is None else [f"performance {score:.2f}"]
    return ", ".join(words + (["truncated"] if cell.outcome == "truncated" else [])) or "nothing measured"


def _has_onset(cells: Sequence[CellRecord]) -> bool:
    return any(split(cell).after for cell in cells)
