"""`openfield demo`: play a small evaluation with a novelty in every installed domain, in under a minute."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.results import play_plan, print_result
from openfield.options import Count, Whole


def demo(
    *domains: str,
    output: Annotated[Path, Parameter(name=["--output", "-o"], metavar="FILE")] = Path("runs/demo.sqlite"),
    workers: Whole = 2,
    trials: Count = 5,
) -> None:
    """See what openfield does: two agents meet a change in every installed domain.

    Args:
        domains: Domains to show [all that are installed].
        output: The run file [runs/demo.sqlite]. The page is written beside it.
        workers: Processes that play [2].
        trials: Trials per domain [5].

    Example:
        openfield demo doom --trials 3
    """
    from openfield.errors import InvalidInput
    from openfield.registry import check_extra, find_domain, find_missing_extra, installed_domains
    from openfield.runner.plan import make_plan
    from openfield.view.requirements import has_view

    chosen = [find_domain(name) for name in domains]
    for domain in chosen:
        check_extra(domain)
    found = chosen or installed_domains()
    missing = {domain.name: extra for domain in found if (extra := find_missing_extra(domain))}
    chosen = [domain for domain in found if domain.name not in missing]
    if not chosen:
        raise InvalidInput("No domain is installed. See what is missing: openfield doctor")
    for domain in chosen:
        novelty = domain.demo_novelty or domain.default_novelty
        made = domain.trials(trials, novelty=novelty, **domain.demo_settings)
        agents = list(domain.demo_agents)
        change = domain.describe(next((trial.novelty for trial in made if trial.novelty), ()))
        print(f"{domain.title}: {' and '.join(agents)} meet a change ({change}).", flush=True)
        result = play_plan(make_plan(agents, made), output, workers)
    print_result(result, as_json=False)
    print(f"\nThe page: {result.page(output.with_suffix('.html'))}   The record: {output}")
    if not has_view():
        missing["view"] = "view"
    _say_next(output, domains[0] if domains else chosen[0].name, missing)


def _say_next(run: Path, domain: str, missing: dict[str, str]) -> None:
    """Suggest the next commands, and the extra of each missing part."""
    from openfield.installation import install_line, name_program

    name = name_program("openfield")
    view = {f"{name} view {quote(str(run))}": "the same in the browser, down to every turn"}
    commands = {
        **({} if "view" in missing else view),
        f"{name} show {quote(str(run))}": "every cell, and with --cell every turn",
        f"{name} list novelties {domain}": "what else can change",
        f"{name} run {domain} --agent your.module:Agent": "your own agent",
    }
    width = max(map(len, commands))
    print("What to type next:")
    for command, meaning in commands.items():
        print(f"  {command:{width}}   {meaning}")
    for extra in dict.fromkeys(missing.values()):
        parts = " and ".join(part for part, each in missing.items() if each == extra)
        print(f"To add {parts}: {install_line(extra)}")
    print(f"\nCan you notice it? {name} play {domain}")
