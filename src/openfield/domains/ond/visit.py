"""A visit to a server: sessions opened, tests played step by step, scores fetched, sessions ended.

The client's workflow of the protocol. Who plays is a `Player`: an agent of ours (`TurnPlayer`) or one written for the
protocol (`host.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from openfield.core import Agent, Ask, Turn
from openfield.domains.ond import actions
from openfield.domains.ond.actions import Buy, Clusters, NextBatch
from openfield.domains.ond.client import Client, Progress, read_ids
from openfield.domains.ond.refusal import Refusal
from openfield.domains.ond.rows import quote_id
from openfield.domains.ond.sheet import load_arrays
from openfield.errors import AgentProtocol, InvalidInput, OpenfieldError
from openfield.report.files import replacing

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


def play_session(client: Client, player: Player, visit: Visit) -> Scores:
    """Plays all tests of a visit with one player; returns the server's numbers for each."""
    return play_sessions(client, [player], visit)[player.name]


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


class TurnPlayer:
    """Lets an agent that answers turns play tests of a server, with the images of a data directory."""

    def __init__(
        self, name: str, make: Callable[[], Agent], root: str, threshold: float = 0.5, detects: bool = True
    ) -> None:
        """A player for agents of ours.

        Args:
            name: What its results are called.
            make: Makes a fresh agent for each test.
            root: A data directory with images.
            threshold: A belief above this declares that the world changed.
            detects: Whether beliefs are posted; those of a reaction baseline are not.
        """
        self.name, self.threshold, self._make, self._detects = name, threshold, make, detects
        arrays = load_arrays(Path(root)) if root else None
        if arrays is None:
            raise InvalidInput("This agent needs images: --set data=DIR, a data directory with arrays.npz.")
        self._arrays = arrays
        self._place = {key: at for at, key in enumerate(arrays["ids"].tolist())}

    def start(self, occasion: Occasion) -> None:
        """A fresh agent learns from the directory's training samples."""
        metadata = occasion.metadata
        self._agent, self._feedback, self._light = self._make(), occasion.feedback, metadata.get("red_light")
        self._lit, self._shown = self._light in occasion.answered, list[str]()
        self._clusters: list[list[float]] | None = None
        self._condda = metadata.get("protocol") == "CONDDA"
        seen: dict[str, Any] = {"metadata": dict(metadata)}
        seen |= {"images": self._arrays["train_images"], "labels": self._arrays["train_labels"]}
        self._agent(Turn(ask=Ask.READY, observation=seen, phase="training", first=True))

    def play(self, number: int, content: bytes) -> Iterator[Mapping[str, str]]:
        """Shows the batch as a turn and posts what the agent answers."""
        ids = read_ids(content)
        self._shown += ids
        self._lit = self._lit or self._light in ids
        light = self._lit if self._light is not None else None
        images = self._arrays["images"][[self._place[key] for key in ids]]
        seen = {"round": number, "ids": ids, "images": images}
        reply = self._agent(Turn(observation=seen, first=True, red_light=light))
        if not isinstance(reply.action, actions.Scores):
            raise AgentProtocol(f"Batch {number} waits for Scores.")
        said = reply.belief.novel if reply.belief else 0.0
        beliefs = said if isinstance(said, tuple) else (said,) * len(ids)
        kind = "characterization" if self._condda else "classification"
        detection = {"detection": _rows(ids, [(value,) for value in beliefs])} if self._detects else {}
        yield detection | {kind: _rows(ids, reply.action.p)}
        self._trade(number, light)

    def finish(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Clusters of all samples the agent was shown, if it gave any."""
        self._agent(Turn(ask=Ask.NONE, last="terminated"))
        return {} if self._clusters is None else {"characterization": _rows(self._shown, self._clusters)}

    def _trade(self, number: int, light: bool | None) -> None:
        """Buys what the agent wants to buy, until it goes on."""
        answer: Any = None
        while True:
            seen = {"round": number, "answered": True}
            action = self._agent(Turn(observation=seen, feedback=answer, red_light=light)).action
            answer = None
            match action:
                case Buy():
                    answer = self._buy(action)
                case Clusters():
                    self._clusters = action.p
                case NextBatch():
                    self._agent(Turn(ask=Ask.NONE, last="terminated", red_light=light))
                    return
                case _:
                    raise AgentProtocol(f"Batch {number} waits for Buy, Clusters or NextBatch.")

    def _buy(self, action: Buy) -> dict[str, Any]:
        try:
            return {"type": action.type, "lines": self._feedback(action.type, action.ids)}
        except Refusal as error:
            return {"type": action.type, "refused": error.reason, "message": str(error)}


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


def _rows(ids: Sequence[str], table: Any) -> str:
    """CSV rows; numbers are written so that they are read back the same."""
    rows = np.asarray(table, dtype=float).tolist()
    return "".join(f"{quote_id(key)},{','.join(map(repr, row))}\n" for key, row in zip(ids, rows, strict=True))
