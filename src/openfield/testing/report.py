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
    passed: bool | None
    """None if it could not be judged."""
    detail: str = ""
    """What is wrong, or why it could not be judged."""


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
        return [finding.check for finding in self.findings if finding.passed is False]

    def __add__(self, other: Report) -> Report:
        return Report(self.findings + other.findings)

    def __str__(self) -> str:
        """A line per finding, for people."""
        marks = {True: "ok", False: "FAILED", None: "not judged"}
        rows = (f"{f.subject}: {f.check}: {marks[f.passed]}{': ' * bool(f.detail)}{f.detail}" for f in self.findings)
        return "\n".join(rows)


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
            findings.append(Finding(subject, name, None, str(reason)))
            continue
        except OpenfieldError as error:
            faults = [str(error)]
        findings.append(Finding(subject, name, not faults, _few(faults)))
        broken = name if faults and name in essential else ""
    return Report(tuple(findings))


def _few(faults: list[str]) -> str:
    more = f"; and {len(faults) - 4} more" if len(faults) > 4 else ""
    return "; ".join(faults[:4]) + more
