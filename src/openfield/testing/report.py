"""What the conformance kit found: one finding per named check.

The kit's checks produce it, `openfield check` prints it, tests read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from openfield.errors import OpenfieldError

T = TypeVar("T")


class Finding(msgspec.Struct, frozen=True):
    """What a check found."""

    subject: str
    """What was looked at: `world`, `agent NAME` or `wire`."""
    check: str
    passed: bool
    """Whether nothing wrong was found."""
    detail: str = ""
    """What is wrong, or why it could not be judged."""
    judged: bool = True
    """Whether it was looked at."""

    @property
    def name(self) -> str:
        """What was looked at, and for what."""
        return f"{self.subject}: {self.check}"


class Report(msgspec.Struct, frozen=True):
    """All findings; JSON-able as it is."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    @property
    def failed(self) -> list[str]:
        """The names of the checks that failed."""
        return [finding.check for finding in self.findings if not finding.passed]

    def __add__(self, other: Report) -> Report:
        return Report(self.findings + other.findings)

    def __str__(self) -> str:
        """A line per finding, for people."""
        rows = ((f.name, "ok" if f.passed else "FAILED", f.detail) for f in self.findings)
        return "\n".join(": ".join(filter(None, row)) for row in rows)


class Judgement(Exception):
    """Raised by a check that cannot judge; its text says why."""


def judge(
    subject: str,
    checks: Mapping[str, Callable[[T], Iterable[str]]],
    evidence: T,
    essential: Iterable[str] = (),
) -> Report:
    """Holds evidence against checks, each giving what is wrong; if an essential one fails, the rest is not judged."""
    findings: list[Finding] = []
    broken = ""
    for name, check in checks.items():
        try:
            if broken:
                raise Judgement(f"'{broken}' failed")
            faults = list(dict.fromkeys(check(evidence)))
        except Judgement as reason:
            findings.append(unjudged(subject, name, str(reason)))
            continue
        except OpenfieldError as error:
            faults = [str(error)]
        findings.append(Finding(subject, name, not faults, _few(faults)))
        broken = name if faults and name in essential else ""
    return Report(tuple(findings))


def unjudged(subject: str, check: str, reason: str) -> Finding:
    """A check that found nothing wrong because it could not look."""
    return Finding(subject, check, True, f"not judged: {reason}", judged=False)


def _few(faults: list[str]) -> str:
    more = f"; and {len(faults) - 4} more" if len(faults) > 4 else ""
    return "; ".join(faults[:4]) + more
