"""The client's side of the protocol: one kept-alive connection, every answer checked, nothing retried needlessly.

Stands opposite `wire.py`; `visit.py` plays whole sessions with it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from openfield.domains.ond.server.errors import Refusal
from openfield.errors import InvalidInput, MissingExtra

PATIENCE_SECONDS = 60.0
LONGEST_QUERY = 20_000
"""Characters of ids that still go into an address, where other servers look for them; ours takes more in a body."""
BOMS = (b"\xff\xfe", b"\xfe\xff")


class Progress(msgspec.Struct, frozen=True):
    """How far a session has come."""

    finished_tests: tuple[str, ...] = ()
    """In the order of their completion."""
    next_rounds: dict[str, int] = {}
    """Where each test under way goes on; only ours tells."""


class Client:
    """Talks to a server of the protocol."""

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("ond", "The client of ond") from None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._errors = (httpx.TransportError, httpx.InvalidURL)
        self._http = httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, headers=headers)
        self._url = url

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def test_ids(self, protocol: str, area: str, seed: int = 0) -> list[str]:
        """The tests a server offers."""
        asked = {"protocol": protocol, "domain": area, "detector_seed": str(seed)}
        lines = self._ask("GET", "/test/ids", params=asked).decode("utf-8-sig", errors="replace").splitlines()
        return [name for name in (line.strip(" \t\"',") for line in lines) if name]

    def open(self, configuration: Mapping[str, Any], tests: Sequence[str]) -> str:
        """Opens a session; returns its id."""
        files = {"configuration": msgspec.json.encode(configuration), "test_ids": "\n".join(tests).encode()}
        return str(self._ask_json("POST", "/session", files=files)["session_id"])

    def metadata(self, session: str, test: str) -> dict[str, Any]:
        """What may be known of a test."""
        return self._ask_json("GET", "/test/metadata", params={"session_id": session, "test_id": test})

    def dataset(self, session: str, test: str, number: int, resume: bool = False) -> bytes | None:
        """A round as the server sends it; None past the end.

        Args:
            session: The session.
            test: The test.
            number: The round.
            resume: Go on with the test, where round 0 would start it again; only for servers that tell the next round.
        """
        asked = {"session_id": session, "test_id": test, "round_id": number} | ({"resume": "1"} if resume else {})
        return self._ask("GET", "/session/dataset", params=asked) or None

    def post(self, session: str, test: str, number: int, results: Mapping[str, str]) -> None:
        """Posts the results of a round."""
        asked = {"session_id": session, "test_id": test, "round_id": number, "result_types": "|".join(results)}
        files = {"test_identification": ("test_identification.json", msgspec.json.encode(asked))}
        files |= {f"{kind}_file": (f"{kind}.csv", text.encode()) for kind, text in results.items()}
        self._ask("POST", "/session/results", files=files)

    def feedback(self, session: str, test: str, kind: str, ids: Sequence[str] | None, number: int) -> list[str]:
        """Buys feedback of one kind; returns its lines."""
        asked = {"session_id": session, "test_id": test, "feedback_type": kind, "round_id": str(number)}
        asked |= {} if ids is None else {"feedback_ids": "|".join(ids)}
        if len(asked.get("feedback_ids", "")) > LONGEST_QUERY:
            content = self._ask("POST", "/session/feedback", data=asked)
        else:
            content = self._ask("GET", "/session/feedback", params=asked)
        lines = content.decode(errors="replace").splitlines()
        if any("," not in line for line in lines):
            raise InvalidInput(f"{self._url}/session/feedback: the answer cannot be read: {content[:60]!r}.")
        return lines

    def evaluate(self, session: str, test: str, more: bool = False, baseline: str | None = None) -> dict[str, Any]:
        """The numbers of a completed test.

        Args:
            session: The session.
            test: The test.
            more: Ask for round by round scores and the like; servers other than ours leave them out.
            baseline: The session of a reaction baseline, for `m_nrp`.
        """
        asked = {"session_id": session, "test_id": test} | ({"more": "1"} if more else {})
        asked |= {"baseline_session_id": baseline} if baseline else {}
        return self._ask_json("GET", "/session/evaluations", params=asked)

    def round_scores(self, session: str, test: str, number: int) -> dict[str, float]:
        """Top-1 and top-3 accuracy of a round just posted; marks the session as one in devmode. Only ours tells."""
        asked = {"session_id": session, "test_id": test, "round_id": number, "roundwise": "1", "devmode": "1"}
        return dict(self._ask_json("GET", "/session/evaluations", params=asked).get("m_acc_round_wise", {}))

    def complete(self, session: str, test: str) -> None:
        """Declares a test complete."""
        self._ask("DELETE", "/test", params={"session_id": session, "test_id": test})

    def end(self, session: str) -> None:
        """Ends a session."""
        self._ask("DELETE", "/session", params={"session_id": session})

    def latest(self, session: str) -> Progress:
        """How far a session has come. A server that fails when no test is finished has none finished."""
        try:
            found = self._ask_json("GET", "/session/latest", params={"session_id": session})
        except Refusal as error:
            if error.status == 500:
                return Progress()
            raise
        try:
            return msgspec.convert(found, Progress)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{self._url}/session/latest: the answer cannot be read: {error}.") from None

    def _ask(self, method: str, path: str, **request: Any) -> bytes:
        """One request; the server's refusals are raised as they are."""
        try:
            answer = self._http.request(method, path, **request)
        except self._errors as error:
            raise InvalidInput(f"{self._url} does not answer: {error}.") from None
        return self._read(path, answer.status_code, bytes(answer.content))

    def _ask_json(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """One request that is answered with an object; servers of old write NaN into it, which is read as null."""
        content = self._ask(method, path, **request)
        try:
            found = json.loads(content, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or (path == "/session" and "session_id" not in found):
            raise InvalidInput(f"{self._url}{path}: the answer cannot be read: {content[:60]!r}.")
        return found

    def _read(self, path: str, status: int, content: bytes) -> bytes:
        """The body of a good answer."""
        if status in (200, 204):
            return content
        try:
            told = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            told = {}
        reason, message = str(told.get("reason", "BadAnswer")), str(told.get("message", f"status {status}"))
        raise Refusal(reason, f"{self._url}{path}: {reason}: {message}", status)


def read_text(content: bytes) -> str:
    """Text as the protocol has it."""
    return content.decode(text_encoding(content))


def text_encoding(content: bytes) -> str:
    """How text of the protocol is written: utf-16 where it begins with a BOM, else utf-8."""
    return "utf-16" if content[:2] in BOMS else "utf-8-sig"


def read_ids(content: bytes) -> list[str]:
    """The ids of a round; text tests come with a BOM and further columns, and their texts may have several lines."""
    if content[:2] in BOMS:
        return [row[0] for row in csv.reader(io.StringIO(read_text(content)), quotechar="|") if row]
    return [line for line in re.split(r"\r?\n", content.decode()) if line]
