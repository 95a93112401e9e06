"""The report of the conformance kit: one finding per named check.

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
    """What was checked: `world`, `agent NAME` or `wire`."""
    check: str
    passed: bool
    """True when nothing wrong was found."""
    detail: str = ""
    """What is wrong, or why it could not be judged."""
    judged: bool = True
    """False when the check could not judge."""

    @property
    def name(self) -> str:
        """The subject and the check."""
        return f"{self.subject}: {self.check}"


class Report(msgspec.Struct, frozen=True):
    """All findings; JSON-able as it is."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """True when no check failed."""
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


class NotJudged(Exception):
    """Raised by a check that cannot judge; its text says why."""


def name_checks(*checks: Callable[[T], Iterable[str]]) -> dict[str, Callable[[T], Iterable[str]]]:
    """Return checks by name, which is that of the function without its underscore."""
    return {check.__name__.removeprefix("_"): check for check in checks}


def judge(
    subject: str, checks: Mapping[str, Callable[[T], Iterable[str]]], evidence: T, essential: Iterable[str] = ()
) -> Report:
    """Run checks on evidence and return their findings. Each check yields what is wrong.

    Without the essential checks the others mean nothing: once one of them fails, the rest is not judged.
    """
    findings: list[Finding] = []
    broken = ""
    for name, check in checks.items():
        try:
            if broken:
                raise NotJudged(f"'{broken}' failed")
            faults = list(dict.fromkeys(check(evidence)))
        except NotJudged as reason:
            findings.append(skip_check(subject, name, str(reason)))
            continue
        except OpenfieldError as error:
            faults = [str(error)]
        findings.append(Finding(subject, name, not faults, _few(faults)))
        broken = name if faults and name in essential else ""
    return Report(tuple(findings))


def skip_check(subject: str, check: str, reason: str) -> Finding:
    """Return the finding of a check that could not judge; it counts as passed."""
    return Finding(subject, check, True, f"not judged: {reason}", judged=False)


def _few(faults: list[str]) -> str:
    more = f"; and {len(faults) - 4} more" if len(faults) > 4 else ""
    return "; ".join(faults[:4]) + more
