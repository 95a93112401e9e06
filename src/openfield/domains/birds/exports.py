"""The birds formats of `openfield export`: the CSV logs of the original evaluation, and the published measures.

The measures have the numbers of the metrics, in percent, with delays counted from 1, as the papers print them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from openfield.core import Ask, Belief, Truth
from openfield.domains.birds.trials import configured
from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.files.csv_files import write_csv
from openfield.journal.reader import SCORED, CellRecord, Episode, Run
from openfield.metrics.detection import PUBLISHED, Rule, measure_detection, measure_passive, measure_rule
from openfield.metrics.performance import count_as_test, mean, measure_adaptation, performances, split_sets
from openfield.metrics.summary import counts_beliefs
from openfield.record import Step
from openfield.trial import Trial

LEVEL_COLUMNS = (
    *("EvaluationIndex", "LevelIndex", "Score", "LevelStatus", "birdsRemaining", "pigsRemaining", "birdsAtStart"),
    *("pigsAtStart", "trial", "levelName", "playStatus", "informed", "novelty"),
)
REPORT_COLUMNS = (
    *("EvaluationIndex", "LevelIndex", "InteractionIndex", "HasNoveltyLikelihood", "NoNoveltyLikelihood"),
    *("novel object IDs", "novelty level", "novelty description", "true novel IDs", "complete true novel IDs"),
    *("trial", "levelName", "playStatus", "informed", "novelty"),
)
GROUP = ("agent", "novelty", "scenario", "trials")
MEASURES = ("CDT%", "WDT%", "delay")
PASSIVE = tuple(f"passive {name}" for name in MEASURES)
PLAYED = ("set", "levels", "attempts", "pass rate")
MEASURE_COLUMNS = (*GROUP, *MEASURES, *PASSIVE, "normal", "novel", "asymptotic", "area", *PLAYED)
DETECTOR_COLUMNS = (*GROUP, "detector", "window", "parameter", *MEASURES)
Groups = dict[tuple[str, str, str], list[CellRecord]]


def write_logs(run: Path, output: Path, cell: str | None = None) -> str:
    """Write both logs into a folder, and return a line that says how much was written.

    The original logs know only one agent. If a run has several, each one gets a folder inside.
    """
    if output.is_file():
        raise InvalidInput(f"{output} is a file; the logs go into a folder.")
    with Run(run) as opened:
        known = [found for found in opened.cells() if found.trial.domain == "birds"]
        numbers = _number_trials(found.trial for found in known)
        chosen = [opened.cell(cell)] if cell else known
        counts = Counter[str]()
        for agent in dict.fromkeys(found.agent for found in chosen):
            folder = output / quote(agent, safe=" ") if len({found.agent for found in chosen}) > 1 else output
            cells = [found for found in chosen if found.agent == agent]
            levels = [row for found in cells for row in _levels(numbers[found.trial.id], found)]
            reports = [row for found in cells for row in _reports(numbers[found.trial.id], found, opened)]
            _write(folder / "EvaluationData.csv", LEVEL_COLUMNS, levels)
            _write(folder / "NoveltyLikelihoodData.csv", REPORT_COLUMNS, reports)
            counts += Counter(levels=len(levels), reports=len(reports))
    return f"{counts['levels']:,} levels and {counts['reports']:,} reports in {output}"


def write_measures(run: Path, output: Path, cell: str | None = None) -> str:
    """Write one row per agent, novelty and scenario, then one for each of its sets; return a line that says how many.

    Rows of sets are those of configured trials. They have no published measures, which are about whole trials.
    """
    rows: list[list[Any]] = []
    for key, cells in _groups(run, cell).items():
        head, all_of = [*key, len(cells)], published(cells)
        episodes = [[episode for episode in found.episodes if episode.detail] for found in cells]
        rows.append([*head, *all_of, "all", *_played(episodes)])
        sets = [split_sets(found) for found in cells]
        for number in sorted({number for found in sets for number in found}):
            name = f"test set {number}" if number else "training set"
            in_set = [found[number] for found in sets if number in found]
            rows.append([*key, len(in_set), *[None] * len(all_of), name, *_played(in_set)])
    return _write(output, MEASURE_COLUMNS, rows)


def _played(trials: list[list[Episode]]) -> list[Any]:
    """Return the levels and attempts of a trial, and the pass rate over attempts: means over trials."""
    played = [attempts for found in trials if (attempts := _levels_of(found))]
    levels: list[float] = [
        len({(episode.detail.get("set"), episode.detail["level"], episode.detail["index"]) for episode in attempts})
        for attempts in played
    ]
    rates = [rate for found in trials if (rate := mean(performances(found))) is not None]
    return [mean(levels), mean([len(attempts) for attempts in played]), mean(rates)]


def _levels_of(episodes: Iterable[Episode]) -> list[Episode]:
    """Return the episodes that are levels; a published rate that was imported is an episode without one."""
    return [episode for episode in episodes if episode.detail and "level" in episode.detail]


def write_detectors(run: Path, output: Path, cell: str | None = None) -> str:
    """Write one row per published detector applied to the pass rates, and return a line that says how many."""
    rows = [
        [*key, len(cells), *_described(rule), *_rates([measure_rule(found, rule, "rule") for found in cells], "rule_")]
        for key, cells in _groups(run, cell).items()
        for rule in PUBLISHED
    ]
    return _write(output, DETECTOR_COLUMNS, rows)


def published(cells: list[CellRecord]) -> list[Any]:
    """Return the published measures over the trials of an agent; None where a measure is defined for no trial.

    An agent that never reports has none of detection: the passive ones are for it.
    """
    detection = [measure_detection(cell) for cell in cells] if counts_beliefs(cells) else []
    correct = [found if found["correct"] else {**found, "delay": None} for found in detection]
    passive = [measure_passive(cell) for cell in cells]
    adaptation = [measure_adaptation(cell) for cell in cells]
    rates = (_mean(adaptation, name) for name in ("before", "after", "asymptotic", "area"))
    return [*_rates(correct), *_rates(passive, "passive_"), *rates]


def _number_trials(trials: Iterable[Trial]) -> dict[str, int]:
    """Return the number of each trial in its configuration, or its index in the run if it has no configuration."""
    known = {trial.id: trial for trial in trials}
    return {
        name: place if (number := configured(trial)) is None else number
        for place, (name, trial) in enumerate(known.items())
    }


def _levels(trial: int, cell: CellRecord) -> Iterator[list[Any]]:
    for number, episode in enumerate(_levels_of(cell.episodes)):
        detail = episode.detail
        (birds, birds_at_start), (pigs, pigs_at_start) = detail["birds"], detail["pigs"]
        counts = [birds, pigs, birds_at_start, pigs_at_start]
        head = [number, detail["index"], detail.get("score", ""), detail["status"], *counts]
        yield [*head, *_place(trial, detail["level"], episode.phase, cell, episode.novel)]


class _Report(NamedTuple):
    """A belief about a level, and when it was stated."""

    turn: Any
    truth: Truth
    """That of the turn."""
    belief: Belief
    interactions: int

    @property
    def was_asked(self) -> bool:
        """Whether it was asked for or sent over the wire; others came along with a shot."""
        detail = self.belief.detail
        return self.turn.ask is Ask.BELIEF or (isinstance(detail, dict) and "objects" in detail)

    @property
    def moment(self) -> tuple[Any, ...]:
        """The level and the interaction that it is about."""
        return self.truth.detail["level"], self.truth.detail["index"], self.interactions


def _reports(trial: int, cell: CellRecord, run: Run) -> Iterator[list[Any]]:
    """Yield one row per report, with the truth of the turn it answers."""
    for number, report in enumerate(_list_reports(run.steps(cell.id, cell.attempt))):
        detail = report.truth.detail
        head = [number, detail["index"], report.interactions, *_belief(report.belief)]
        ids = [" ".join(map(str, found)) for found in detail.get("novel", ((), ()))]
        yield [*head, *ids, *_place(trial, detail["level"], report.turn.phase, cell, report.truth.novel)]


def _list_reports(steps: Iterable[Step]) -> list[_Report]:
    """Return all beliefs about levels. Of those that came along with one shot the last counts: a log has one a shot."""
    reports: list[_Report] = []
    asked: tuple[Any, Truth] | None = None
    for step in steps:
        belief = step.reply.belief if step.reply is not None else None
        if belief is not None and asked is not None:
            report = _Report(*asked, belief, _count_interactions(asked[1], step.truth))
            last = reports[-1] if reports else None
            if last is not None and last.moment == report.moment and not (last.was_asked and report.was_asked):
                reports.pop()
            reports.append(report)
        if step.turn is not None:
            asked = (step.turn, step.truth) if step.truth is not None and step.truth.detail else None
    return reports


def _count_interactions(before: Truth, after: Truth | None) -> int:
    """Return the interactions of a set at the end of a step: a belief that comes with a shot is about that shot."""
    later = after.detail if after is not None and after.detail else before.detail
    same = (later["level"], later["index"]) == (before.detail["level"], before.detail["index"])
    return int((later if same else before.detail)["interactions"])


def _belief(belief: Belief) -> list[Any]:
    detail = belief.detail if isinstance(belief.detail, dict) else {}
    objects = " ".join(str(name) for name in detail.get("objects", ()))
    text = str(detail.get("text", "")).replace(",", "")
    return [belief.highest, detail.get("not_novel", 1 - belief.highest), objects, belief.level or 0, text]


def _place(trial: int, level: str, phase: str, cell: CellRecord, novel: bool) -> list[Any]:
    informed = "informed" if cell.trial.red_light else "uninformed"
    return [trial, level, phase, informed, "novel" if novel else "basic"]


def _groups(run: Path, cell: str | None) -> Groups:
    """Return the scored cells by agent, novelty and scenario, without unchanged twins: published trials all change."""
    groups: Groups = {}
    with Run(run) as opened:
        cells = [opened.cell(cell)] if cell else opened.cells()
    for found in map(count_as_test, cells):
        if found.outcome in SCORED and found.trial.domain == "birds" and not found.trial.is_unchanged_twin:
            scenario = str(found.trial.settings.get("scenario", "all"))
            groups.setdefault((found.agent, "+".join(found.trial.novelty), scenario), []).append(found)
    return groups


def _rates(found: list[dict[str, float | None]], name: str = "") -> list[float | None]:
    """Return %CDT, %WDT, and the mean delay over correct trials, counted from 1."""
    correct, alarmed = (_mean(found, name + kind) for kind in ("correct", "alarmed"))
    delay = _mean(found, name + "delay")
    percent = [None if share is None else 100 * share for share in (correct, alarmed)]
    return [*percent, None if delay is None else delay + 1]


def _described(rule: Rule) -> list[Any]:
    if rule.threshold is not None:
        return ["moving average", rule.window, rule.threshold]
    return ["pre-assumed moving average", rule.window, rule.deviations]


def _mean(found: list[dict[str, float | None]], name: str) -> float | None:
    return mean([value for values in found if (value := values.get(name)) is not None])


def _write(path: Path, columns: Iterable[str], rows: list[list[Any]]) -> str:
    with replacing(path) as draft:
        write_csv(draft, columns, rows)
    return f"{len(rows)} rows in {path}"
