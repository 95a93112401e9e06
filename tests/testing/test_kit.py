"""The kit as a whole: tests to inherit, and a report of everything a domain brings."""

from __future__ import annotations

import msgspec
import pytest

from openfield.registry import find_domain
from openfield.testing import Conformance, Report, check_domain
from support import bad_worlds
from support.places import MAZE
from support.walks import WALKS


class TestWalks(Conformance):
    domain = WALKS


@pytest.mark.slow
def test_the_maze_passes_as_a_whole_and_the_report_is_data() -> None:
    report = check_domain(find_domain(MAZE))
    assert report.passed, report
    assert {finding.subject for finding in report.findings} == {"world", "agent compass", "wire"}
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
    assert "world: answers: ok" in str(report)


def test_conformance_tells_what_failed() -> None:
    class Broken(Conformance):
        domain = bad_worlds.IDLE_NOVELTY

    with pytest.raises(AssertionError, match="novelties: FAILED"):
        Broken().test_world()
