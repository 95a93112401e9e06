"""`openfield list`: list what there is to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from openfield.console import print_json, print_rows

if TYPE_CHECKING:
    from openfield.domain import Domain

Things = Literal["domains", "agents", "novelties", "metrics", "settings", "options", "runs", "flags"]
"""`flags` is the old name of `options`."""
Rows = tuple[tuple[str, ...], list[tuple[object, ...]]]


def list_things(what: Things = "domains", domain: str | None = None, /, *, json: bool = False) -> None:
    """List domains, agents, novelties, metrics, a domain's settings and options, or the runs in a folder.

    Args:
        what: What to list [domains].
        domain: List only what belongs to this domain. Settings and options need one. For runs it is a folder [runs].
        json: Print as JSON.

    Example:
        openfield list novelties birds
    """
    if what == "runs":
        _list_runs(domain or "runs", json)
    else:
        print_rows(*_rows(what, domain), json)


def _list_runs(folder: str, as_json: bool) -> None:
    from openfield.report.run_list import describe_runs, list_runs

    runs = list_runs([folder])
    if as_json:
        print_json(runs)
    elif runs:
        print_rows(*describe_runs(runs), as_json)
    else:
        print(f"There is no run in {folder}. Runs are SQLite files; openfield run makes one.")


def _rows(what: Things, name: str | None) -> Rows:
    from msgspec.structs import astuple

    from openfield.errors import InvalidInput
    from openfield.metrics.catalogue import installed_metrics
    from openfield.registry import find_domain, installed_domains
    from openfield.settings import setting_rows

    if what == "metrics":
        return ("metric", "numbers", "meaning"), [
            (metric.name, ", ".join(number.name for number in metric.numbers), metric.note)
            for metric in installed_metrics()
        ]
    if name is None and what in ("settings", "options", "flags"):
        raise InvalidInput(f"{what.capitalize()} of which domain? Name one: openfield list {what} DOMAIN")
    domains = installed_domains() if name is None else [find_domain(name)]
    if what == "settings":
        return ("setting", "type", "default", "meaning"), [astuple(row) for row in setting_rows(domains[0].settings)]
    if what in ("options", "flags"):
        return _options(domains[0])
    if what == "domains":
        return ("domain", "what it is", "novelties", "agents", "to install it"), [
            (each.name, each.title, len(each.novelties), ", ".join(each.agents), _say_missing(each)) for each in domains
        ]
    if what == "agents":
        return ("agent", "domain", "meaning"), list(_list_agents(domains))
    if name is not None and not domains[0].novelties and (problem := domains[0].diagnose()):
        raise InvalidInput(problem)
    return ("domain", "novelty", "level", "kind", "meaning"), [
        (domain.name, each.id, each.level, each.kind, each.note) for domain in domains for each in domain.novelties
    ]


def _list_agents(domains: Iterable[Domain[Any]]) -> Iterator[tuple[object, ...]]:
    """Yield agents with what each does: those of domains first, then those for any domain, and controls last."""
    from openfield.agents.controls import KINDS
    from openfield.registry import CONTROLS, describe_agent, installed_agents

    for domain in domains:
        for name, source in domain.agents.items():
            yield name, domain.name, describe_agent(source)
    for name, factory in installed_agents().items():
        yield name, "any", describe_agent(factory)
    for name in CONTROLS:
        yield name, "control", f"Must fail. {describe_agent(KINDS[name])}"


def _say_missing(domain: Domain[Any]) -> str:
    """Return the line that installs a domain's missing parts; empty if nothing is missing."""
    from openfield.installation import install_line
    from openfield.registry import find_missing_extra

    extra = find_missing_extra(domain)
    return install_line(extra) if extra else ""


def _options(domain: Domain[Any]) -> Rows:
    """List the options of a domain, each with the commands that take it."""
    from openfield.cli.shared.domain_options import describe_options
    from openfield.options import COMMANDS

    takers: dict[tuple[str, str], list[str]] = {}
    for command in COMMANDS:
        for row in describe_options(domain, command):
            takers.setdefault(row, []).append(command)
    return ("option", "of", "meaning"), [(usage, ", ".join(names), note) for (usage, note), names in takers.items()]
