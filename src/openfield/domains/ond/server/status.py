"""The status of sessions as lines of text: which detector plays, since when, and what is completed.

Under `session_service.py`, which answers status requests with these lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from openfield.domains.ond.errors import Refusal
from openfield.serving.sessions import Session


def choose_sessions(sessions: Iterable[Session], wanted: Mapping[str, str]) -> list[Session]:
    """Return the sessions that a request is about, sorted by detector and id.

    `wanted` may name one session, a detector, or a time after which sessions ended.
    """
    after = _moment(wanted["after"]) if "after" in wanted else None
    return [
        session
        for session in sorted(sessions, key=lambda session: (session.agent, session.id))
        if wanted.get("session_id", session.id) == session.id
        and wanted.get("detector", session.agent) == session.agent
        and (after is None or ("ended" in session.facts and _moment(session.facts["ended"]) >= after))
    ]


def session_line(session: Session) -> str:
    """Return the line of a session: its id, its detector, when it was opened and when it ended."""
    return f"{session.id},{session.agent},{session.facts['created']},{session.facts.get('ended') or 'Incomplete'}"


def test_lines(session: Session, tests: Sequence[str] | None, firsts: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each of some tests, or of the completed ones, with the time of its first results."""
    ended = session.facts.get("ended", "Incomplete")
    for test in list(finished_tests(session)) if tests is None else tests:
        yield f"{session.id},{session.agent},{test},{firsts.get(test) or 'N/A'},{ended}"
    if tests is None and not finished_tests(session):
        yield f"{session.id},{session.agent}, NA,N/A,{ended}"


def done_tests(session: Session) -> dict[str, dict[str, str]]:
    """Return the completed tests, and those that an original server listed as such."""
    found = {}
    for key, value in session.facts.items():
        kind, _, test = key.partition(" ")
        if kind in ("test", "listed"):
            found[test] = value
    return found


def finished_tests(session: Session) -> dict[str, str]:
    """Return the completed tests and their times, in the order of their completion, whatever the clock said."""
    return {test: value["completed"] for test, value in done_tests(session).items()}


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        raise Refusal("BadRequest", "after must be a time such as 2026-01-31 12:00:00.") from None
