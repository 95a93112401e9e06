"""A visit to a server: sessions opened, tests played step by step, scores fetched, sessions ended.

The client's workflow of the protocol. Who plays is a `Player`: an agent of ours (`turns.py`) or one written for the
protocol (`host.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from openfield.atomic import replacing
from openfield.domains.ond.client.rest_client import Client, Progress, read_ids
from openfield.domains.ond.server.errors import Refusal
from openfield.errors import OpenfieldError

Feedback = Callable[[str, Sequence[str] | None], list[str]]
"""Buys feedback of a kind on some ids of the round just posted."""
REPOSTS = ("DetectionRepost", "ResultsRepost")
"""How a server says that it has these results."""
GONE = ("SessionEnded", "session_id_invalid")
"""How a server says that it has no such session, or no longer."""


class Occasion(msgspec.Struct, frozen=True):
    """A test that begins, or goes on after samples that were answered before an interruption."""

    session: str
    test: str
    metadata: Mapping[str, Any]
    feedback: Feedback
    answered: tuple[str, ...] = ()


class Player(Protocol):
    """Plays tests of the protocol."""

    name: str
    threshold: float

    def start(self, occasion: Occasion) -> None:
        """A test begins, or goes on."""
        ...

    def play(self, number: int, content: bytes) -> Iterator[Mapping[str, str]]:
        """Answers a round: results to be posted one after the other; after the last, feedback may be bought."""
        ...

    def finish(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The test is over: results to be posted with round 0, if any."""
        ...


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What is played where."""

    protocol: str = "OND"
    area: str = "image_classification"
    hints: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    """Empty means all the server offers."""
    most: int | None = None
    """At most so many tests."""
    resume: dict[str, str] = {}
    """Player -> a session to go on with."""
    baseline: str | None = None
    """The player that is the reaction baseline of the others."""
    evaluate: bool = True
    rounds: bool = True
    """Ask for the scores of every round as well."""
    save: str | None = None
    """A folder for the scores of each test."""


Scores = dict[str, dict[str, Any]]
"""The server's numbers by test."""


def play_sessions(client: Client, players: Sequence[Player], visit: Visit) -> dict[str, Scores]:
    """Plays all tests of a visit as the protocol has it: a session for everyone, all tests, all numbers, all ends.

    The baseline is played first and not scored; the numbers of the others are told against it. Where there are no
    others, what is returned says by which session it can be told against.
    """
    tests = list(visit.tests or client.test_ids(visit.protocol, visit.area))[: visit.most]
    known = {name: client.latest(session) for name, session in visit.resume.items()}  # refused before any is opened
    sessions = {player.name: _open(client, player, visit, tests) for player in players}
    for player in sorted(players, key=lambda player: player.name != visit.baseline):
        progress = known.get(player.name, Progress())
        try:
            for test in tests:
                if test not in progress.finished_tests:
                    first = progress.next_rounds.get(test, 0)
                    play_test(client, player, sessions[player.name], test, first, visit.protocol)
        except OpenfieldError as error:
            _tell_how_to_go_on(error, player.name, sessions)
            raise
    found = {
        player.name: {test: _score(client, sessions, player, test, visit) for test in tests if visit.evaluate}
        for player in players
        if player.name != visit.baseline
    }
    for name, scores in found.items():
        _save(visit.save, name, scores)
    if not found:
        found = {name: _tell_of_baseline(session, tests) for name, session in sessions.items()}
    for session in sessions.values():
        client.end(session)
    return found


def play_test(client: Client, player: Player, session: str, test: str, first: int = 0, protocol: str = "OND") -> None:
    """Plays one test to its completion, from its first round or the one at which it was interrupted.

    The session's protocol is played, whatever the test's metadata say of theirs.
    """
    ids, number = _answered_ids(client, session, test, first), first

    def feedback(kind: str, chosen: Sequence[str] | None) -> list[str]:
        return client.feedback(session, test, kind, chosen, number)

    metadata = client.metadata(session, test) | {"protocol": protocol}
    player.start(Occasion(session, test, metadata, feedback, tuple(ids)))
    while (content := client.dataset(session, test, number)) is not None:
        for results in player.play(number, content):
            _post(client, session, test, number, results, first > 0)
        ids += read_ids(content)
        number += 1
    last = player.finish(ids)
    if last:
        _post(client, session, test, 0, last, first > 0)
    client.complete(session, test)


def _open(client: Client, player: Player, visit: Visit, tests: Sequence[str]) -> str:
    """The session of a player: the one to go on with, or a new one."""
    if player.name in visit.resume:
        return visit.resume[player.name]
    asked = {
        "protocol": visit.protocol,
        "domain": visit.area,
        "novelty_detector_version": f"{player.name}-0.0.1",
        "detection_threshold": player.threshold,
        "hints": list(visit.hints),
    }
    return client.open(asked, tests)


def _tell_how_to_go_on(error: OpenfieldError, name: str, sessions: Mapping[str, str]) -> None:
    """Adds what to type to an error; a session that the server no longer has cannot be gone on with."""
    gone = isinstance(error, Refusal) and error.reason in GONE
    pairs = "+".join(f"{other}:{session}" for other, session in sessions.items() if other != name or not gone)
    if pairs:
        error.args = (f"{error} The sessions stay open; go on with --set resume={pairs}.",)


def _answered_ids(client: Client, session: str, test: str, first: int) -> list[str]:
    """The samples of the rounds before the one at which a test goes on."""
    rounds = (client.dataset(session, test, number, resume=True) for number in range(first))
    return [key for content in rounds if content is not None for key in read_ids(content)]


def _post(client: Client, session: str, test: str, number: int, results: Mapping[str, str], resumed: bool) -> None:
    """Posts results; where a test was interrupted, type by type, and what the server has already stays as it is."""
    for part in [{kind: text} for kind, text in results.items()] if resumed else [results]:
        try:
            client.post(session, test, number, part)
        except Refusal as error:
            if not resumed or error.reason not in REPOSTS:
                raise


def _score(client: Client, sessions: Mapping[str, str], player: Player, test: str, visit: Visit) -> dict[str, Any]:
    try:
        baseline = sessions[visit.baseline] if visit.baseline is not None else None
        return client.evaluate(sessions[player.name], test, visit.rounds, baseline=baseline)
    except Refusal as error:
        return {"refused": str(error)}


def _tell_of_baseline(session: str, tests: Sequence[str]) -> Scores:
    """What there is to say of a reaction baseline that nobody was told against yet."""
    note = "A reaction baseline is not scored itself; ask for others' scores with this baseline_session_id."
    return {test: {"baseline_session_id": session, "note": note} for test in tests}


def _save(folder: str | None, name: str, scores: Mapping[str, Any]) -> None:
    for test, numbers in scores.items() if folder is not None else ():
        with replacing(Path(folder or "") / f"{test}_{name}.json") as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(numbers)))
