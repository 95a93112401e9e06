"""`openfield list`: what there is to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from openfield.console import print_json, print_table

if TYPE_CHECKING:
    from openfield.domain import Domain

Things = Literal["domains", "agents", "novelties", "metrics", "settings", "flags"]
Rows = tuple[tuple[str, ...], list[tuple[object, ...]]]


def list_things(what: Things = "domains", domain: str | None = None, /, *, json: bool = False) -> None:
    """List domains, agents, novelties, metrics, or a domain's settings and flags.

    Parameters
    ----------
    what
        What to list.
    domain
        Only this domain's; settings and flags need one.
    json
        Print as JSON.
    """
    titles, rows = _rows(what, domain)
    if json:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    else:
        print_table(titles, rows)


def print_flags(name: str, command: str) -> None:
    """Prints the flags a domain adds to a command, as its help shows its own."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table

    from openfield.registry import find_domain

    domain = find_domain(name)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for flag in getattr(domain, "flags", ()):
        if command in flag.commands:
            table.add_row(flag.usage, flag.note)
    if table.row_count:
        Console().print(Panel(table, title=f"Options of {domain.name}", title_align="left"))


def _rows(what: Things, name: str | None) -> Rows:
    from openfield.errors import InvalidInput
    from openfield.metrics.catalogue import installed_metrics
    from openfield.registry import find_domain, installed_domains
    from openfield.settings import setting_rows

    if what == "metrics":
        return ("metric", "numbers", "meaning"), [
            (metric.name, ", ".join(number.name for number in metric.numbers), metric.note)
            for metric in installed_metrics()
        ]
    if what in ("settings", "flags"):
        if name is None:
            raise InvalidInput(f"{what.capitalize()} of which domain? Name one: openfield list {what} DOMAIN")
        if what == "flags":
            return _flags(find_domain(name))
        rows = setting_rows(find_domain(name).settings)
        return ("setting", "type", "default", "meaning"), [(r.name, r.type, r.default, r.note) for r in rows]
    domains = installed_domains() if name is None else [find_domain(name)]
    if what == "domains":
        return ("domain", "what it is", "novelties", "agents"), [_domain_row(each) for each in domains]
    return _agents(domains) if what == "agents" else _novelties(domains)


def _domain_row(domain: Domain[Any]) -> tuple[object, ...]:
    return domain.name, domain.title, len(domain.novelties), ", ".join(domain.agents)


def _agents(domains: list[Domain[Any]]) -> Rows:
    from openfield.registry import installed_agents

    rows: list[tuple[object, ...]] = [(name, "any that names its actions") for name in installed_agents()]
    rows += [(name, domain.name) for domain in domains for name in domain.agents]
    return ("agent", "domain"), rows


def _novelties(domains: list[Domain[Any]]) -> Rows:
    return ("domain", "novelty", "level", "kind", "meaning"), [
        (domain.name, each.id, each.level, each.kind, each.note) for domain in domains for each in domain.novelties
    ]


def _flags(domain: Domain[Any]) -> Rows:
    return ("flag", "of", "meaning"), [
        (flag.usage, ", ".join(flag.commands), flag.note) for flag in getattr(domain, "flags", ())
    ]
