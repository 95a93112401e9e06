"""Sessions as lines of text: who plays, since when, what is completed.

Groups -> lines; the service answers status requests with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from openfield.domains.ond.errors import Refusal
from openfield.serving.sessions import Session


def choose_sessions(groups: Iterable[Session], wanted: Mapping[str, str]) -> list[Session]:
    """The sessions a request is about, by detector and id: all, one, those of a detector, those ended after a time."""
    after = _moment(wanted["after"]) if "after" in wanted else None
    return [
        group
        for group in sorted(groups, key=lambda group: (group.agent, group.id))
        if wanted.get("session_id", group.id) == group.id
        and wanted.get("detector", group.agent) == group.agent
        and (after is None or ("ended" in group.facts and _moment(group.facts["ended"]) >= after))
    ]


def session_line(group: Session) -> str:
    """A session: its id, its detector, when it was opened and when it ended."""
    return f"{group.id},{group.agent},{group.facts['created']},{group.facts.get('ended') or 'Incomplete'}"


def test_lines(group: Session, tests: Sequence[str] | None, firsts: Mapping[str, str]) -> Iterator[str]:
    """The tests of a session that were asked for, or the completed ones: each with the time of its first results."""
    ended = group.facts.get("ended", "Incomplete")
    for test in list(finished_tests(group)) if tests is None else tests:
        yield f"{group.id},{group.agent},{test},{firsts.get(test) or 'N/A'},{ended}"
    if tests is None and not finished_tests(group):
        yield f"{group.id},{group.agent}, NA,N/A,{ended}"


def done_tests(group: Session) -> dict[str, dict[str, str]]:
    """Completed tests, and those that an original server listed as such."""
    found = {}
    for key, value in group.facts.items():
        kind, _, test = key.partition(" ")
        if kind in ("test", "listed"):
            found[test] = value
    return found


def finished_tests(group: Session) -> dict[str, str]:
    """Completed tests and when, in the order of their completion, whatever the clock said."""
    return {test: value["completed"] for test, value in done_tests(group).items()}


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        raise Refusal("BadRequest", "after must be a time such as 2026-01-31 12:00:00.") from None
