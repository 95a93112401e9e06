"""The client's workflow of the protocol: open sessions, play their tests, fetch the scores, end the sessions.

An `OndPlayer` answers the rounds: `TurnPlayer` for an openfield agent, `StepPlayer` for one of the original client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from openfield.domains.ond.client.rest_client import RestClient, SessionProgress
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.results import read_ids
from openfield.errors import InvalidInput, OpenfieldError
from openfield.files.atomic import replacing
from openfield.parameters import write_source

BuyFeedback = Callable[[str, Sequence[str] | None], list[str]]
"""Buys feedback of one kind on some ids of the round just posted, and returns its lines."""
ServerScores = dict[str, dict[str, Any]]
"""The server's scores by test."""
REPOSTS = ("DetectionRepost", "ResultsRepost")
"""The reasons of a refusal that say that the server has these results."""
BASELINE_NOTE = (
    "A reaction baseline is not scored itself. Score other sessions against it with this baseline_session_id."
)
MAX_VERSION = 150
"""Characters of an agent's name and parameters that its sessions state in full."""
GONE = ("SessionEnded", "session_id_invalid")
"""The reasons of a refusal that say that the session has ended or never existed."""


THRESHOLD = "detection_threshold"
"""The parameter of an agent that becomes the threshold of its session."""


def read_threshold(value: Any) -> float:
    """Return the detection threshold of an agent.

    Raises:
        InvalidInput: It is not a number from 0 to 1.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{THRESHOLD} must be a number from 0 to 1, not {value!r:.60}.")
    return float(value)


def write_version(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the version of an agent that its session states: name and parameters, which are a digest if long."""
    whole = write_source(name, parameters)
    if len(whole) > MAX_VERSION:
        whole = f"{name}({hashlib.sha256(whole.encode()).hexdigest()[:12]})"
    return f"{whole}-0.0.1"


class StartedTest(msgspec.Struct, frozen=True):
    """A test that a player is about to play, from its start or from where it was interrupted."""

    session: str
    test: str
    metadata: Mapping[str, Any]
    feedback: BuyFeedback
    answered: tuple[str, ...] = ()
    """The samples answered before an interruption."""


class OndPlayer(Protocol):
    """Answers the rounds of tests for an agent."""

    name: str
    threshold: float
    version: str
    """Its name in sessions: name and parameters."""

    def start(self, started: StartedTest) -> None:
        """Prepare for a test."""
        ...

    def play(self, number: int, content: bytes) -> Iterator[Mapping[str, str]]:
        """Yield the results of a round, to be posted one after the other.

        Feedback may be bought after the last ones are posted.
        """
        ...

    def finish(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the results of the whole test, if any; they are posted with round 0."""
        ...


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The tests to play, and how their scores are reported."""

    protocol: str = "OND"
    area: str = "image_classification"
    hints: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    """Empty means all tests the server offers."""
    max_tests: int | None = None
    resume: dict[str, str] = {}
    """OndPlayer -> the session to resume."""
    baseline: str | None = None
    """The player that is the reaction baseline of the others."""
    evaluate: bool = True
    round_scores: bool = True
    """Also ask for the scores of every round."""
    save: str | None = None
    """A folder for the scores of each test."""
    compat: bool = False
    """Play by the original's rules: rounds need no results. The server marks the session."""


def play_sessions(client: RestClient, players: Sequence[OndPlayer], options: SessionOptions) -> dict[str, ServerScores]:
    """Play all tests with all players and return the scores by player.

    Every player has a session. The baseline plays first and is not scored; the others are scored against it. If the
    baseline plays alone, its session is returned, so that other sessions can be scored against it later.
    """
    tests = list(options.tests or client.test_ids(options.protocol, options.area))[: options.max_tests]
    resumed = {name: client.latest(session) for name, session in options.resume.items()}  # refused before any is opened
    sessions = {player.name: _open(client, player, options, tests) for player in players}
    for player in sorted(players, key=lambda player: player.name != options.baseline):
        progress = resumed.get(player.name, SessionProgress())
        try:
            for test in tests:
                if test not in progress.finished_tests:
                    first = progress.next_rounds.get(test, 0)
                    play_test(client, player, sessions[player.name], test, first, options.protocol)
        except OpenfieldError as error:
            _add_resume_hint(error, player.name, sessions)
            raise
    scored = tests if options.evaluate else ()
    baseline = sessions[options.baseline] if options.baseline is not None else None
    found = {
        name: {test: _score(client, session, test, options.round_scores, baseline) for test in scored}
        for name, session in sessions.items()
        if name != options.baseline
    }
    if options.save is not None:
        _save(Path(options.save), found)
    if not found:
        found = {
            name: {test: {"baseline_session_id": session, "note": BASELINE_NOTE} for test in tests}
            for name, session in sessions.items()
        }
    for session in sessions.values():
        client.end(session)
    return found


def play_test(
    client: RestClient, player: OndPlayer, session: str, test: str, first: int = 0, protocol: str = "OND"
) -> None:
    """Play one test to its completion.

    It begins with the round `first` if it was interrupted. The session's protocol is played, even if the metadata of
    the test name another.
    """
    before = (client.dataset(session, test, number, resume=True) for number in range(first))
    ids, number = [key for content in before if content is not None for key in read_ids(content)], first

    def feedback(kind: str, chosen: Sequence[str] | None) -> list[str]:
        return client.feedback(session, test, kind, chosen, number)

    metadata = client.metadata(session, test) | {"protocol": protocol}
    player.start(StartedTest(session, test, metadata, feedback, tuple(ids)))
    while (content := client.dataset(session, test, number)) is not None:
        for results in player.play(number, content):
            _post(client, session, test, number, results, first > 0)
        ids += read_ids(content)
        number += 1
    last = player.finish(ids)
    if last:
        _post(client, session, test, 0, last, first > 0)
    client.complete(session, test)


def _open(client: RestClient, player: OndPlayer, options: SessionOptions, tests: Sequence[str]) -> str:
    """Return the session of a player: the one to resume, or a new one."""
    if player.name in options.resume:
        return options.resume[player.name]
    asked = {
        "protocol": options.protocol,
        "domain": options.area,
        "novelty_detector_version": player.version,
        "detection_threshold": player.threshold,
        "hints": list(options.hints),
    }
    return client.open(asked, tests, options.compat)


def _add_resume_hint(error: OpenfieldError, name: str, sessions: Mapping[str, str]) -> None:
    """Add the option that resumes the open sessions to an error; the server may no longer have the failed one."""
    gone = isinstance(error, Refusal) and error.reason in GONE
    pairs = "+".join(f"{other}:{session}" for other, session in sessions.items() if other != name or not gone)
    if pairs:
        error.args = (f"{error} The sessions stay open; go on with --set resume={pairs}.",)


def _post(client: RestClient, session: str, test: str, number: int, results: Mapping[str, str], resumed: bool) -> None:
    """Post results. In a resumed test they are posted type by type, and those that the server has are skipped."""
    for part in [{kind: text} for kind, text in results.items()] if resumed else [results]:
        try:
            client.post(session, test, number, part)
        except Refusal as error:
            if not resumed or error.reason not in REPOSTS:
                raise


def _score(client: RestClient, session: str, test: str, rounds: bool, baseline: str | None) -> dict[str, Any]:
    try:
        return client.evaluate(session, test, rounds, baseline)
    except Refusal as error:
        return {"refused": str(error)}


def _save(folder: Path, found: Mapping[str, ServerScores]) -> None:
    for name, scores in found.items():
        for test, numbers in scores.items():
            with replacing(folder / f"{test}_{name}.json") as draft:
                draft.write_bytes(msgspec.json.format(msgspec.json.encode(numbers)))
