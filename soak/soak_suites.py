"""The conformance kit on environments of every suite of `gym:`, with all their novelties.

Of environments that a suite describes alike one is checked, the one with the shortest name. `--environments N` [0]
checks the first N of each suite; 0 means all. Names of environments after the options check only these.
"""

from __future__ import annotations

import sys
import time
from fnmatch import fnmatchcase
from typing import Any

import gymnasium
import msgspec

from common import finish, parameter, report
from openfield.domains.gym.makers import register_environments
from openfield.domains.gym.suites.suite import SUITES, read_suite
from openfield.registry import find_domain
from openfield.testing import check_domain

PATIENCE = 900.0
"""Seconds for one answer: other work may go on on the machine."""


def main(count: int, wanted: list[str]) -> None:
    chosen = wanted or [name for suite in SUITES for name in list_environments(suite)[: count or None]]
    for name in chosen:
        judge(name)


def list_environments(name: str) -> list[str]:
    """Return an environment of each kind that a suite describes otherwise than the others."""
    suite = read_suite(name)
    for pattern in suite.ids:
        register_environments(pattern)
    known = [each for each in gymnasium.registry if any(fnmatchcase(each, pattern) for pattern in suite.ids)]
    kinds: dict[bytes, str] = {}
    for each in sorted(known, key=lambda text: (len(text), text)):
        described = msgspec.structs.replace(suite.describe(each), ids=(), reference=None, source="")
        kinds.setdefault(msgspec.json.encode(described), each)
    return list(kinds.values())


def judge(name: str) -> None:
    domain: Any = find_domain(f"gym:{name}")
    domain.check_patience = PATIENCE
    began = time.process_time()
    found = check_domain(domain)
    seconds = time.process_time() - began
    broken = [f"{each.name}: {each.detail}" for each in found.findings if not each.passed]
    unseen = [each.detail for each in found.findings if each.check == "novelties" and not each.judged]
    report(
        "suites",
        f"{name}: broken rules",
        len(broken),
        0,
        seconds=round(seconds, 1),
        broken=broken,
        unseen=unseen,
    )


if __name__ == "__main__":
    main(parameter("environments", 0, 1), [word for word in sys.argv[1:] if not word.lstrip("-").isalnum()])
    finish()
