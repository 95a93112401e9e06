"""The conformance kit: it checks that worlds, agents and wires keep the promises openfield relies on.

Start with `world.py`, whose checks read like a list of these promises; `agent.py` and `wire.py` have the others.
`evidence.py` plays the trials that the checks look at. `openfield check DOMAIN` runs all of it, and authors of plugins
inherit it in their tests:

    class TestMaze(openfield.testing.Conformance):
        domain = MAZE
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openfield.domain import Domain
from openfield.testing.agent import check_agent
from openfield.testing.controls import check_controls
from openfield.testing.evidence import check_trials, list_competitors
from openfield.testing.report import Finding, Report
from openfield.testing.wire import check_wire
from openfield.testing.world import check_world

__all__ = [
    "Conformance",
    "Finding",
    "Report",
    "check_agent",
    "check_controls",
    "check_domain",
    "check_wire",
    "check_world",
]


def check_domain(domain: Domain[Any], novelties: Sequence[str] = ()) -> Report:
    """Check everything a domain brings: its worlds, its agents and its wire; with novelties, only worlds with these."""
    if novelties:
        return check_world(domain, check_trials(domain, novelties))
    report = check_world(domain)
    for name in list_competitors(domain):
        report += check_agent(name, domain)
    return report + check_wire(domain)


class Conformance:
    """Tests to inherit: name the domain, and run them with pytest."""

    domain: Domain[Any]
    patience: float = 60.0
    """Seconds a world or an agent may need for one answer; a slow machine must not fail a test."""

    def test_world(self) -> None:
        """Check the worlds."""
        _expect(check_world(self.domain, patience=self.patience))

    def test_agents(self) -> None:
        """Check the agents, except oracles."""
        for name in list_competitors(self.domain):
            _expect(check_agent(name, self.domain, patience=self.patience))

    def test_wire(self) -> None:
        """Check the wire."""
        _expect(check_wire(self.domain, patience=2 * self.patience))


def _expect(report: Report) -> None:
    if not report.passed:
        raise AssertionError(f"\n{report}")
