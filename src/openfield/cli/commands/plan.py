"""`openfield plan`: say how many trials a difference of two agents needs, and what these take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from openfield.options import AGENTS, Options
from openfield.runner.experiment import TrialOptions

if TYPE_CHECKING:
    from openfield.planning.sample_size import Need, Spending
    from openfield.result import Result

PILOT = 10
"""Trials of a pilot."""
OF_RUN = (
    *("until", "negligible", "race", "max_trials"),
    *("register", "question", "registered"),
    *("share", "sealed", "secret", "output"),
)
"""Keys of an experiment file that are about its run and not about a pilot."""
Outputs = Annotated[tuple[Path, ...], Parameter(name=["--output", "-o"], metavar="FILE", consume_multiple=False)]
BAR = 40
"""Columns of the longest bar."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PilotAgents(Options):
    """Who plays the pilot."""

    agents: Annotated[
        list[str], Parameter(name=["--agents", "--agent", "-a"], consume_multiple=True, metavar="AGENT", group=AGENTS)
    ] = field(default_factory=list)
    """Agents, as `openfield run` takes them. Existing runs have theirs."""


PILOT_AGENTS, PILOT_TRIALS = PilotAgents(), TrialOptions()


def plan(
    *sources: Annotated[str, Parameter(metavar="DOMAIN|RUN")],
    agents: PilotAgents = PILOT_AGENTS,
    pilot: TrialOptions = PILOT_TRIALS,
    detect: Annotated[float, Parameter(validator=Number(gt=0, lt=1), metavar="DIFFERENCE")] = 0.1,
    power: Annotated[float, Parameter(validator=Number(gte=0.5, lte=0.99))] = 0.9,
    output: Outputs = (),
    json: bool = False,
) -> None:
    """Say how many trials a difference needs, with hours, tokens and cost, from a short pilot or from existing runs.

    Args:
        sources: A domain or an experiment file, of which ten trials are played (--trials), or run files.
        agents: Who plays the pilot.
        pilot: The trials of the pilot, which are not those of a run.
        detect: The difference of performances to detect [0.1].
        power: The chance of detecting it, from 0.5 to 0.99 [0.9].
        output: Keep the pilot in this run file (.sqlite), or draw the width of intervals against the number of trials:
            .pdf, .svg or .png. Repeat it for both.
        json: Print the answer as JSON.

    Example:
        openfield plan birds --agents planner naive --detect 0.1 -o plan.svg
    """
    from openfield.console import print_json
    from openfield.errors import Cancelled, InvalidInput
    from openfield.planning.sample_size import find_needs, measure_spending, trace_widths
    from openfield.report.export.paper_figure import PaperFigure
    from openfield.result import Result

    if not sources:
        raise InvalidInput("Name a domain for a pilot, or run files: openfield plan birds --agents planner naive")
    kept, drawn = _sort_outputs(output)
    if all(source.endswith(".sqlite") for source in sources):
        if agents.given or pilot.given or kept:
            raise InvalidInput("Existing runs have their agents and trials: leave the other options out.")
        result = Result(list(sources))
    elif len(sources) > 1:
        raise InvalidInput(f"Name one domain or run files, not {' and '.join(sources)}. Agents follow --agents.")
    else:
        with TemporaryDirectory() as folder:
            try:
                result = _play_pilot(sources[0], agents, pilot, kept or Path(folder, "pilot.sqlite"), json)
            except Cancelled:
                if kept:
                    raise
                raise Cancelled("Stopped; the pilot is not kept. To go on with one later: --output FILE") from None
            spending, needs = measure_spending(result), find_needs(result, detect, power)
    if sources[0].endswith(".sqlite"):
        spending, needs = measure_spending(result), find_needs(result, detect, power)
    if not needs:
        raise InvalidInput("Nothing can be said: two agents need three common trials with a performance.")
    if drawn is not None:
        PaperFigure(trace_widths(needs)).save(drawn)
    if json:
        listed = {name: each._asdict() for name, each in spending.items()}
        print_json({"detect": detect, "power": power, "needs": needs, "spending": listed})
        return
    _print_needs(needs, detect, power)
    _print_spending(needs, spending)
    _print_widths(max(needs, key=lambda need: need.deviation))
    if drawn is not None:
        print(f"\nDrawn for all pairs of agents: {drawn}")


def _sort_outputs(output: Sequence[Path]) -> tuple[Path | None, Path | None]:
    """Return the run file and the figure that are to be written."""
    from openfield.errors import InvalidInput
    from openfield.lazy import import_extra
    from openfield.report.export.paper_figure import NEED, check_format

    kept = [path for path in output if path.suffix == ".sqlite"]
    drawn = [path for path in output if path.suffix != ".sqlite"]
    for path in drawn:
        check_format(path)
        import_extra("matplotlib", *NEED)  # before a pilot is played
    if len(kept) > 1 or len(drawn) > 1:
        raise InvalidInput("One run file and one figure are written: give --output at most once for each.")
    return next(iter(kept), None), next(iter(drawn), None)


def _play_pilot(name: str, agents: PilotAgents, pilot: TrialOptions, path: Path, as_json: bool) -> Result:
    """Play some trials of a domain, and return the result."""
    from openfield.cli.shared.domain_options import find_target
    from openfield.cli.shared.results import play_plan
    from openfield.errors import InvalidInput
    from openfield.runner.campaign import Part, plan_parts
    from openfield.runner.run import with_options
    from openfield.trial import derive

    target = find_target("plan", name, pilot)
    chosen = target.experiment.without(*OF_RUN)
    own: dict[str, Any] = {**pilot.given, **agents.given}
    copied = chosen.trials_of is not None or "trials_of" in own
    usual: dict[str, Any] = {} if copied else {"trials": PILOT, "settings": {"unchanged": 0}}
    if not copied and not own.keys() & {"seed", "sealed", "secret"}:
        usual["seed"] = derive(target.experiment.seed, "pilot")
    parts = chosen.change(usual, own).split()
    made = plan_parts([Part(*pair) for pair in zip(parts, target.domains, strict=True)], path)
    if len(made.agents) < 2:
        raise InvalidInput("A plan compares agents: name two, as in --agents planner naive.")
    return play_plan(with_options(made, chosen, target.file), path, as_json=as_json, passing=True)


def _print_needs(needs: Sequence[Need], detect: float, power: float) -> None:
    from openfield.console import print_table

    print(f"Trials that change, to see a difference of {detect:g} with a chance of {power:.0%}:".replace("%", " %"))
    rows = [
        (
            need.scenario.domain,
            "+".join(need.scenario.novelty) or "none",
            f"{need.first} - {need.second}",
            f"{need.difference:.2f} ± {need.deviation:.2f}",
            need.measured,
            _say_trials(need),
            "–" if need.until_decided is None else f"{need.until_decided:.0f}",
        )
        for need in needs
    ]
    print_table(("domain", "novelty", "agents", "difference", "trials seen", "needed", "--until decided"), rows)
    print("The range is what so few trials leave open; --until decided says what is played on average.")


def _say_trials(need: Need) -> str:
    from openfield.planning.sample_size import MAX_TRIALS

    least, most = (f"> {MAX_TRIALS:,}" if each is None else f"{each:,}" for each in (need.trials, need.trials_at_most))
    return least if least == most else f"{least} (to {most})"


def _print_spending(needs: Sequence[Need], spending: dict[str, Spending]) -> None:
    """Print what the needed trials of each agent take, with those in which nothing changes."""
    from openfield.console import print_table, say_count
    from openfield.report.render import format_seconds
    from openfield.trial import UNCHANGED_SHARE

    wanted = [need.trials for need in needs if need.trials is not None]
    if len(wanted) < len(needs):
        return
    rows = []
    for name, each in spending.items():
        count = sum(
            max((n.trials or 0 for n in needs if n.scenario == scenario and name in (n.first, n.second)), default=0)
            for scenario in {need.scenario for need in needs}
        )
        played = round(count * (1 + UNCHANGED_SHARE))
        cost = "–" if each.cost is None else f"{each.cost * played:,.2f}"
        tokens = f"{each.tokens * played:,.0f}" if each.tokens else "–"
        rows.append((name, f"{played:,}", format_seconds(each.seconds * played), tokens, cost))
    print("\nWhat they take, with the unchanged trials, one after the other:")
    print_table(("agent", "trials", "time", "tokens", "cost"), rows)
    print(f"As one run: --trials {max(wanted)} ({say_count(len(rows), 'agent')}).")


def _print_widths(need: Need) -> None:
    """Print how narrow the interval of a difference becomes."""
    print(f"\nHow wide the interval of {need.first} - {need.second} is, by trials that change:")
    widest = max(need.widths.values())
    for trials, width in need.widths.items():
        print(f"{trials:>6}  {'━' * max(1, round(BAR * width / widest))} {width:.2f}")
