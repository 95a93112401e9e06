"""`openfield check`: check that a domain keeps the rules every domain must keep."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from openfield.console import print_json, print_table, say_count

Novelties = Annotated[tuple[str, ...], Parameter(metavar="NAME", consume_multiple=False)]
REPLAYS = frozenset(("same_seed", "replay", "clock", "global_random"))
"""The rules that a world breaks which does not replay."""


def check(domain: str, /, *, novelty: Novelties = (), controls: bool = False, json: bool = False) -> None:
    """Check that a domain keeps the rules every domain must keep.

    Args:
        domain: A domain's name, `module:attribute` or `file.py`.
        novelty: Check only worlds with this novelty, also one that no list has, such as `gravity=20`, or one that comes
            gradually: `'gravity=20 over 5'`. Repeat it for further ones.
        controls: Check instead that agents which must fail do fail, in 40 trials.
        json: Print the findings as JSON.

    Example:
        openfield check mine.py:MAZE
    """
    from openfield.errors import InvalidInput
    from openfield.registry import check_extra, find_domain
    from openfield.testing import Report, check_controls, check_domain

    found = find_domain(domain)
    check_extra(found)
    if controls:
        reports = [check_controls(found, novelty=each) for each in novelty or (None,)]
        report = Report(tuple(finding for each in reports for finding in each.findings))
    else:
        report = check_domain(found, novelty)
    if json:
        print_json(report)
    else:
        rows = [("ok" if each.passed else "FAILED", each.subject, each.check, each.detail) for each in report.findings]
        print_table(("", "of", "check", "detail"), rows)
    if report.failed:
        advice = getattr(found, "replay_advice", "") if REPLAYS.intersection(report.failed) else ""
        broken = f"{domain} breaks {say_count(len(report.failed), 'rule')}: {', '.join(report.failed)}."
        raise InvalidInput(f"{broken} {advice}".strip())
