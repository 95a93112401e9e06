"""Play a plan, print the result, and fail if nothing in it was scored; let code run that a run file names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from openfield.cli.shared.parameters import NUMBERS, NumberOptions
from openfield.console import escape_controls, make_console, print_json, print_table, say_count

if TYPE_CHECKING:
    from openfield.cell import Cell
    from openfield.domain import Domain
    from openfield.journal.reader import Run
    from openfield.result import Result
    from openfield.run_files import RunRecord
    from openfield.runner.cluster import Players
    from openfield.runner.plan import Plan


def play_plan(
    plan: Plan,
    path: Path,
    workers: Players | None = None,
    as_json: bool = False,
    passing: bool = False,
    says_reach: bool = False,
) -> Result:
    """Play what is left of a plan, show how far it is, and return the result.

    If JSON is printed, what agents print in this process goes to standard error; workers always send it there.

    Args:
        plan: What is played.
        path: The run file.
        workers: What plays it.
        as_json: Whether JSON is printed.
        passing: Whether what shows how far it is goes at the end.
        says_reach: Whether it is said first what the number of trials can show.
    """
    from openfield.planning import prepare_play
    from openfield.report.progress import showing_progress
    from openfield.runner.run import run_plan

    plan, look = prepare_play(plan, path)
    if says_reach:
        _say_reach_of(plan)
    confirm_calls(plan, path)
    with showing_progress(plan, path, passing) as watch, redirect_stdout(sys.stderr) if as_json else nullcontext():
        run_plan(plan, path, workers, watch, look)
    from openfield.result import Result  # metrics are loaded when there is something to measure

    return Result([path])


def _say_reach_of(plan: Plan) -> None:
    """Say before the first trial what the number of trials can show, if agents are compared."""
    from openfield.parameters import is_control

    if len({cell.agent for cell in plan.cells if not is_control(plan.sources[cell.agent])}) < 2:
        return
    from openfield.planning.reach import count_by_scenario, say_reach

    if counts := count_by_scenario(plan):
        reach = say_reach(min(counts), plan.stopping is not None)
        most = "" if plan.stopping is None else "at most "
        print(f"openfield: {most}{reach}. How many you need: openfield plan", file=sys.stderr)


def confirm_calls(plan: Plan, path: Path) -> None:
    """Say before the first call what the language models of a plan will be asked; ask first if it is much.

    Raises:
        Cancelled: The user does not want to go on.
    """
    from openfield.errors import Cancelled
    from openfield.parameters import list_language_models

    if not list_language_models(plan.agents):
        return
    from openfield.agents.llm import estimate_plan
    from openfield.runner.scheduler import list_left

    estimates = estimate_plan(plan, list_left(plan, path))
    for name, estimate in estimates.items():
        most = "" if plan.stopping is None else ", if the run does not stop before"
        print(f"{escape_controls(name)}: {estimate}{most}.", file=sys.stderr)
    total, limit = sum(each.tokens for each in estimates.values()), plan.options.ask_above
    if total <= limit or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"These are more than {limit:,} tokens (--ask-above). Start? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("Nothing was played.")


def print_plan(plan: Plan, path: Path, as_json: bool) -> None:
    """Print what would be played, about what it takes, and the fingerprint that the run file will have for its plan."""
    from openfield.agents.llm.call_estimate import CALL_SECONDS, estimate_plan
    from openfield.journal.fingerprint import fingerprint_plan, write_trial
    from openfield.journal.reader import Run
    from openfield.planning.interim import make_look
    from openfield.report.render import format_seconds
    from openfield.runner.duration import count_lanes, estimate_seconds
    from openfield.runner.scheduler import list_left

    if plan.stopping is not None:
        make_look(plan, plan.stopping, path)  # a rule that cannot be met is refused
    planned = {cell.id: (cell.agent, write_trial(cell.trial), cell.repeat) for cell in plan.cells}
    known = {}
    if path.exists():
        with Run(path) as run:
            known = run.planned()
    fingerprint = fingerprint_plan((planned | known).values())
    rows = [(cell.id, cell.agent, cell.trial.domain, cell.trial.id, cell.repeat) for cell in plan.cells]
    titles = ("cell", "agent", "domain", "trial", "repeat")
    left = list_left(plan, path)
    estimates, seconds = estimate_plan(plan, left), estimate_seconds(plan, left)
    calls = sum(each.calls for each in estimates.values()) * CALL_SECONDS
    seconds = None if seconds is None and not calls else (seconds or 0.0) + calls / count_lanes(plan, len(left))
    if as_json:
        cells = [dict(zip(titles, row, strict=True)) for row in rows]
        listed = {name: each._asdict() for name, each in estimates.items()}
        print_json({"plan": fingerprint, "cells": cells, "estimates": listed, "seconds": seconds})
        return
    print_table(titles, rows)
    print()
    for name, estimate in estimates.items():
        print(f"{escape_controls(name)}: {estimate}")
    if seconds is not None and left:
        pace = f"a call takes {CALL_SECONDS:g} s" if calls else "agents answer at once"
        print(f"Time: about {format_seconds(max(seconds, 1.0))} if {pace}")
    others = len(known.keys() - planned.keys())
    more = f", and {say_count(others, 'other')} that {path} holds" if others else ""
    print(f"{say_count(len(rows), 'cell')}{more}. Nothing was played.\nPlan: {fingerprint}")


def print_result(
    result: Result,
    as_json: bool,
    metrics: list[str] | None = None,
    numbers: NumberOptions = NUMBERS,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print the numbers of a result.

    Args:
        result: The run files.
        as_json: Whether to print JSON instead of tables.
        metrics: The metrics; by default those that the domains name.
        numbers: Which numbers are shown, and how they are computed.
        more: Further keys of the JSON object.
    """
    if as_json:
        summary = to_builtins(result.summary(**numbers.choose(metrics)))
        facts = {
            "findings": result.findings(numbers.intervals, numbers.failures),
            "runs": result.records,
            "provenance": result.provenance,
            "cautions": result.cautions,
        }
        facts |= {"usage": result.usage} if result.usage else {}
        print_json(summary | facts | dict(more or {}))
        return
    from openfield.journal.reader import SCORED

    make_console().print(result.table(**numbers.choose(metrics)))
    print_usage(result)
    for caution in result.cautions:
        print(escape_controls(caution))
    changing = [cell for cell in result.cells if cell.trial.is_changed and cell.outcome in SCORED]
    if unchanged := [cell for cell in changing if not any(episode.novel for episode in cell.episodes)]:
        print(f"In {len(unchanged)} of {len(result.cells)} cells the trial ended before the change came.")
    for record in result.records:
        print_record(record)


def print_usage(result: Result) -> None:
    """Print what language models used up, if any played."""
    rows = [
        (
            agent,
            *(f"{count:,}" for count in (used.calls, used.tokens_in, used.tokens_out)),
            f"{used.seconds:,.1f}",
            "-" if used.cost is None else f"{used.cost:,.4f}",
        )
        for agent, used in result.usage.items()
    ]
    if rows:
        print_table(("agent", "calls", "tokens sent", "tokens written", "seconds of calls", "cost"), rows)


def print_record(record: RunRecord) -> None:
    """Print how much of its plan a run file holds, and its fingerprint."""
    for title, words in record.describe(f" of {record.run}").items():
        print(f"{title[0].upper()}{title[1:]}: {words}")  # which keeps the name of the file as it is


def fail_if_nothing_scored(result: Result, cells: Iterable[Cell]) -> None:
    """Raise an error with exit status 1 if every cell of the command failed, except controls: a script must notice."""
    from openfield.errors import NothingScored
    from openfield.journal.reader import SCORED

    asked = {cell.id for cell in cells}
    played = [cell for cell in result.cells if cell.id in asked]
    judged = [cell for cell in played if not cell.control] or played
    if not any(cell.outcome in SCORED for cell in judged):
        notes = [f"{cell.outcome}: {cell.note}" for cell in judged if cell.note]
        why = f" ({max(notes, key=notes.count).splitlines()[0].rstrip('.'):.300})" if notes else ""
        shown = f"openfield show {quote(str(result.paths[0]))}"
        counted = any((cell.outcome or "").startswith("agent_") for cell in judged)
        problem = "No cell was played to its end, and each counts as 0" if counted else "No cell could be scored"
        raise NothingScored(f"{problem}{escape_controls(why)}. See more: {shown}")


def print_seed(facts: Mapping[str, str]) -> None:
    """Say the root seed of a sealed run, now that it is over."""
    from openfield.runner.sealing import SEED_FACT

    if SEED_FACT in facts:
        print(f"\nThe trials were sealed; their root seed was 0x{facts[SEED_FACT]}.")


def admit_all(path: Path, trust: bool) -> None:
    """Let all code run that a run file names, and list it."""
    from openfield.journal.reader import Run
    from openfield.provenance.trust import admit_code, list_code

    with Run(path) as run:
        code = list_code(run)
        admit_code(run, code, trust)
    _print_code(path, code)


def admit_domains(run: Run, trust: bool) -> dict[str, Domain[Any]]:
    """Let the domains of a run file run, list those that it names, and return all of them."""
    from openfield.provenance.trust import admit_code, list_domain_code, trusted_domain

    code = list_domain_code(run)
    admit_code(run, code, trust)
    _print_code(run.path, code)
    return {name: trusted_domain(run, name, trust) for name in {trial.domain for trial in run.trials()}}


def _print_code(path: Path, code: Sequence[str]) -> None:
    if code:
        print(f"openfield: {path} names this code, which runs now: {', '.join(code)}", file=sys.stderr)
