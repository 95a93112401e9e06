"""Check that a domain's numbers cannot be had without looking: controls do not beat chance, and quitting does not pay.

Part of the conformance kit, for `openfield check DOMAIN --controls`. It plays whole blind trials.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from openfield.domain import Domain
from openfield.isolation import isolate
from openfield.metrics.catalogue import find_metrics
from openfield.metrics.concordance import estimate_concordance
from openfield.metrics.metric import Metric, Number
from openfield.metrics.significance import flip_signs, permute_labels
from openfield.metrics.summary import list_numbers, measure_trials
from openfield.parameters import CONTROL
from openfield.registry import domain_source, use_domain
from openfield.result import Result
from openfield.runner.isolation.bubblewrap import find_obstacle
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan
from openfield.runner.sealing import SEED_BITS
from openfield.testing.report import Finding, Report, skip_check
from openfield.trial import Trial, spread_windows, stages_of

CHANGED = 28
"""Trials that change; with two fifths as many that do not, there are 40."""
ALPHA = 0.001
WORKERS = 2
STAYS = "quitter:1000000"
"""A quitter that never quits. Under the name of the quitter it has the same seeds, and so does the same."""


def check_controls(domain: Domain[Any], changed: int = CHANGED, novelty: str | None = None) -> Report:
    """Check a domain with controls: those that never look, the peeker in isolation, the enumerator on sealed trials.

    Where feedback is sold, the buyer and, in isolation, the scout play too; it meets every trial twice.

    Args:
        domain: The domain. If no other process can import it, the controls play in this one, and none is isolated.
        changed: How many of the trials change.
        novelty: What changes in them, with a process or without; None is the domain's default.
    """
    use_domain(domain)
    if not domain.novelties:
        return Report((skip_check("controls", "chance", "the domain has no novelty"),))
    with tempfile.TemporaryDirectory(prefix="openfield-") as folder:
        found = tuple(_play_all(domain, changed, Path(folder), novelty))
    if novelty is None:
        return Report(found)
    return Report(tuple(msgspec.structs.replace(each, subject=f"{each.subject}, {novelty}") for each in found))


def _play_all(domain: Domain[Any], changed: int, folder: Path, novelty: str | None) -> Iterator[Finding]:
    """Play all controls, and yield what each shows."""
    workers = WORKERS if domain_source(domain.name) else 0

    def play(run: str, agents: Any, trials: Sequence[Trial]) -> Result:
        run_plan(make_plan(agents, trials), folder / f"{run}.sqlite", workers)
        return Result([folder / f"{run}.sqlite"])

    trials = draw_trials(domain, changed, 0, novelty)
    patience = max(1, min(3, trials[0].test_length // 4))  # in a short test it must quit soon, or not at all
    blind = {
        "counter": f"counter:{_middle_of_window(trials)}",
        "alarmist": "alarmist",
        "quitter": f"quitter:{patience}",
    }
    played = play("blind", _as_controls(blind), trials)
    yield from (judge_chance(name, played) for name in blind)
    yield judge_quitting(played, play("stays", _as_controls({"quitter": STAYS}), trials), domain)
    if domain.sells_feedback:
        buyers = {"buyer": "buyer", "silent buyer": "buyer:0"}
        bought = play("bought", _as_controls(buyers), trials)
        yield from (judge_chance(name, bought) for name in buyers)
    obstacle = find_obstacle() if workers else "no other process can import the domain"
    if obstacle:
        yield skip_check("control peeker, isolated", "chance", obstacle)
    else:
        yield judge_chance(
            "peeker", play("isolated", isolate(_as_controls({"peeker": "peeker"})), trials), ", isolated"
        )
        if domain.sells_feedback:
            scouts = isolate(_as_controls({"scout": "scout"}))
            play("scouted", scouts, trials)
            yield judge_chance("scout", play("met again", scouts, trials), ", isolated, the second time")
    hidden = draw_trials(domain, changed, secrets.randbits(SEED_BITS), novelty)
    yield judge_chance("enumerator", play("sealed", _as_controls({"enumerator": "enumerator"}), hidden), ", sealed")


def draw_trials(domain: Domain[Any], changed: int, seed: int, novelty: str | None = None) -> list[Trial]:
    """Return blind trials with the settings of checks: their onsets are drawn even if those settings fix them."""
    settings, usual = domain.check_settings, domain.default_novelty or domain.novelties[0].id
    (sample,) = domain.trials(1, 0, usual, **{**settings, "onset": 0, "unchanged": 0})
    wanted = usual if novelty is None else novelty
    windows = spread_windows(sample.test_length, len(stages_of(domain.novelty_names(wanted))))
    onset = ",".join("-".join(map(str, window)) for window in windows)
    return domain.trials(changed, seed, wanted, **{**settings, "onset": onset})


def judge_chance(name: str, played: Result, how: str = "") -> Finding:
    """Return whether the beliefs of a control do no better than chance."""
    subject, cells = f"control {name}{how}", [cell for cell in played.counted() if cell.agent == name]
    scored = [cell for cell in cells if cell.is_scored]
    if len(scored) < len(cells):
        failed = next(cell for cell in cells if not cell.is_scored)
        return Finding(subject, "chance", False, f"a trial ended as {failed.outcome}: {failed.note}")
    found = estimate_concordance(scored)
    if found is not None and found.p is None:  # it failed in some trials, and is tested in the others
        whole = [cell for cell in scored if not any(episode.failed for episode in cell.episodes)]
        found = estimate_concordance(whole) or msgspec.structs.replace(
            found, p=1.0 if (found.mean or 0.0) <= 0.5 else None
        )
    if found is None or found.p is None:
        why = "counting finds the onset: at no test episode is one trial changed and another not"
        return Finding(subject, "chance", False, why)
    return Finding(subject, "chance", found.p >= ALPHA, f"concordance {found.mean:.2f}, p = {found.p:.2g}")


def judge_quitting(quits: Result, stays: Result, domain: Domain[Any]) -> Finding:
    """Return whether a quitter gains nothing, in any number, over the same agent that stays."""
    metrics = [metric for metric in find_metrics(domain.metrics).values() if metric.relate is None]
    ours, theirs = (_measure(result, metrics) for result in (quits, stays))
    left = sum(cell.outcome == "agent_error" for cell in quits.cells if cell.agent == "quitter")
    rows = [(number, ours.get(number.name, {}), theirs.get(number.name, {})) for number in list_numbers(metrics)]
    gains = [gain for row in rows if (gain := find_gain(*row))]
    detail = "; ".join(gains) or f"left {left} of {len(stays.cells)} trials"
    return Finding("control quitter", "quitting", not gains, detail)


def _measure(result: Result, metrics: Sequence[Metric]) -> dict[str, dict[str, float]]:
    cells = [cell for cell in result.counted() if cell.agent == "quitter" and cell.is_scored]
    return measure_trials(cells, metrics)


def find_gain(number: Number, ours: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    """Return what a number gains by quitting, in words; empty if it gains nothing, or no more than chance may give.

    It may gain in trials that both agents have, or by leaving out trials that the other does badly in.
    """
    sign = {"higher": 1.0, "lower": -1.0, "": 0.0}[number.better]
    if not sign or number.partial or not ours or not theirs:
        return ""
    shared, dropped = [trial for trial in theirs if trial in ours], [trial for trial in theirs if trial not in ours]
    gaps = [sign * (ours[trial] - theirs[trial]) for trial in shared]
    if sum(gaps) > 0 and flip_signs(gaps) < ALPHA:
        return f"'{number.title}' is better by {sum(gaps) / len(gaps):.2f} in the same trials"
    kept, lost = ([sign * theirs[trial] for trial in trials] for trials in (shared, dropped))
    if lost and kept and mean(kept) > mean(lost) and permute_labels(kept, lost) < ALPHA:
        return f"'{number.title}' leaves out {len(lost)} trials that went badly"
    return ""


def _as_controls(names: Mapping[str, str]) -> dict[str, str]:
    """Return the sources of controls, also where a domain has agents of the same names."""
    return {name: f"{CONTROL}{source}" for name, source in names.items()}


def _middle_of_window(trials: Sequence[Trial]) -> int:
    """Return the number of episodes or steps at which a counter has the best chance."""
    low, high = next((trial.window for trial in trials if trial.window), (0, 0))
    return (low + high + 1) // 2
