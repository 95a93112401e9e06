"""The client side of the REST protocol: over one kept-alive connection, or answered in this process.

The counterpart of `server/routes.py`; `workflow.py` plays whole sessions with it. Every answer is checked, and nothing
is tried again. `LocalClient` has the same service and journal as a server, without a socket.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from openfield.domain import Domain
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.routes import Api
from openfield.domains.ond.server.session_service import ServiceRules, SessionService
from openfield.domains.ond.testset.builder import write_trials
from openfield.domains.ond.trials import find_directory
from openfield.errors import InvalidInput
from openfield.journal.leases import holding
from openfield.journal.writer import Journal
from openfield.lazy import import_extra
from openfield.serving.sessions import SessionDispatcher

TIMEOUT_SECONDS = 60.0
MAX_QUERY = 20_000
"""Characters of ids that are sent in the URL, as every server expects. Longer lists go into a body, for openfield's."""


class SessionProgress(msgspec.Struct, frozen=True):
    """The finished tests of a session, and the next round of each test in progress."""

    finished_tests: tuple[str, ...] = ()
    """In the order of their completion."""
    next_rounds: dict[str, int] = {}
    """The next round of each test in progress. Only openfield's server sends it."""


class RestClient:
    """Send the requests of the protocol to a server."""

    def __init__(self, url: str, token: str | None = None) -> None:
        httpx = import_extra("httpx", "ond", "The client of ond")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._errors = (httpx.TransportError, httpx.InvalidURL)
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, headers=headers)
        self._url = url

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def test_ids(self, protocol: str, area: str, seed: int = 0) -> list[str]:
        """Return the ids of the tests a server offers."""
        asked = {"protocol": protocol, "domain": area, "detector_seed": str(seed)}
        lines = self._ask("GET", "/test/ids", params=asked).decode("utf-8-sig", errors="replace").splitlines()
        return [name for name in (line.strip(" \t\"',") for line in lines) if name]

    def open(self, configuration: Mapping[str, Any], tests: Sequence[str], compat: bool = False) -> str:
        """Open a session and return its id; with `compat` by the original's rules, which openfield's server marks."""
        files = {"configuration": msgspec.json.encode(configuration), "test_ids": "\n".join(tests).encode()}
        files |= {"original_client": b"1"} if compat else {}
        return str(self._ask_json("POST", "/session", files=files)["session_id"])

    def metadata(self, session: str, test: str) -> dict[str, Any]:
        """Return the metadata of a test that the client may see."""
        return self._ask_json("GET", "/test/metadata", params={"session_id": session, "test_id": test})

    def dataset(self, session: str, test: str, number: int, resume: bool = False) -> bytes | None:
        """Return the body of a round as the server sends it, or None past the last round.

        With `resume`, round 0 does not restart the test; only openfield's server knows it.
        """
        asked = {"session_id": session, "test_id": test, "round_id": number} | ({"resume": "1"} if resume else {})
        return self._ask("GET", "/session/dataset", params=asked) or None

    def post(self, session: str, test: str, number: int, results: Mapping[str, str]) -> None:
        """Post the results of a round: CSV text by result type."""
        asked = {"session_id": session, "test_id": test, "round_id": number, "result_types": "|".join(results)}
        files = {"test_identification": ("test_identification.json", msgspec.json.encode(asked))}
        files |= {f"{kind}_file": (f"{kind}.csv", text.encode()) for kind, text in results.items()}
        self._ask("POST", "/session/results", files=files)

    def feedback(self, session: str, test: str, kind: str, ids: Sequence[str] | None, number: int) -> list[str]:
        """Buy feedback of one kind and return its lines."""
        asked = {"session_id": session, "test_id": test, "feedback_type": kind, "round_id": str(number)}
        asked |= {} if ids is None else {"feedback_ids": "|".join(ids)}
        if len(asked.get("feedback_ids", "")) > MAX_QUERY:
            content = self._ask("POST", "/session/feedback", data=asked)
        else:
            content = self._ask("GET", "/session/feedback", params=asked)
        lines = content.decode(errors="replace").splitlines()
        if any("," not in line for line in lines):
            raise InvalidInput(f"{self._url}/session/feedback: the answer cannot be read: {content[:60]!r}.")
        return lines

    def evaluate(self, session: str, test: str, more: bool = False, baseline: str | None = None) -> dict[str, Any]:
        """Return the scores of a completed test, with `m_nrp` if the session of a reaction baseline is given.

        With `more`, openfield's server adds the scores of each round and others.
        """
        asked = {"session_id": session, "test_id": test} | ({"more": "1"} if more else {})
        asked |= {"baseline_session_id": baseline} if baseline else {}
        return self._ask_json("GET", "/session/evaluations", params=asked)

    def complete(self, session: str, test: str) -> None:
        """Declare a test complete."""
        self._ask("DELETE", "/test", params={"session_id": session, "test_id": test})

    def end(self, session: str) -> None:
        """End a session."""
        self._ask("DELETE", "/session", params={"session_id": session})

    def latest(self, session: str) -> SessionProgress:
        """Return the progress of a session.

        Other servers answer with status 500 before the first test is finished; that means no progress.
        """
        try:
            found = self._ask_json("GET", "/session/latest", params={"session_id": session, "rounds": "1"})
        except Refusal as error:
            if error.status == 500:
                return SessionProgress()
            raise
        try:
            return msgspec.convert(found, SessionProgress)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{self._url}/session/latest: the answer cannot be read: {error}.") from None

    def _ask(self, method: str, path: str, **request: Any) -> bytes:
        """Send a request and return the body of the answer; a refusal of the server is raised as `Refusal`."""
        try:
            answer = self._http.request(method, path, **request)
        except self._errors as error:
            raise InvalidInput(f"{self._url} does not answer: {error}.") from None
        return self._read(path, answer.status_code, bytes(answer.content))

    def _ask_json(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """Send a request and return the JSON object in the answer; the NaN that older servers send is read as null."""
        content = self._ask(method, path, **request)
        try:
            found = json.loads(content, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or (path == "/session" and "session_id" not in found):
            raise InvalidInput(f"{self._url}{path}: the answer cannot be read: {content[:60]!r}.")
        return found

    def _read(self, path: str, status: int, content: bytes) -> bytes:
        """Return the body of an answer with a good status, and raise `Refusal` for any other."""
        if status in (200, 204):
            return content
        try:
            refusal = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            refusal = {}
        reason, message = str(refusal.get("reason", "BadAnswer")), str(refusal.get("message", f"status {status}"))
        raise Refusal(reason, f"{self._url}{path}: {reason}: {message}", status)


LOCAL = "here"
"""The address that stands for a server in this process."""


class LocalClient(RestClient):
    """Answer the requests of a client from a data directory, or from tests built for it."""

    def __init__(
        self,
        domain: Domain[Any],
        run: Path,
        data: str = "",
        trials: int = 5,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Open the run file that records everything, and a data directory.

        Args:
            domain: The domain.
            run: The run file.
            data: A data directory, whose tests are played; or any other source of samples, as in the setting `data`,
                from which tests are built and written beside the run file. Empty stands for digits.
            trials: How many tests are built.
            seed: The seed they are built from.
            settings: Their other settings.
        """
        with ExitStack() as stack:
            begun = stack.enter_context(holding(run))
            journal = stack.enter_context(Journal(run))
            dispatcher = SessionDispatcher(journal, domain)
            stack.callback(dispatcher.close)
            named = {**(settings or {}), **({"data": data} if data else {})}
            self.root = data if data and find_directory(data).count() else self._build(domain, run, trials, seed, named)
            rules = ServiceRules(scorings=None)  # the labels are here
            self._api = Api(SessionService(dispatcher, find_directory(self.root), domain.version, rules))
            self._runner = stack.enter_context(asyncio.Runner())
            self._url = LOCAL
            self._open = stack.pop_all()
            begun()

    @staticmethod
    def _build(domain: Domain[Any], run: Path, trials: int, seed: int, settings: Mapping[str, Any]) -> str:
        """Build tests and write them beside the run file; return the data directory."""
        return str(write_trials(domain, domain.trials(trials, seed, **settings), run.with_suffix(".data")))

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _ask(self, method: str, path: str, **request: Any) -> bytes:
        given = {name: str(value) for name, value in {**request.get("params", {}), **request.get("data", {})}.items()}
        for name, part in request.get("files", {}).items():
            given[name] = (part[1] if isinstance(part, tuple) else part).decode()
        try:
            answer = self._runner.run(self._api.answer(method, path, given))
        except Refusal as error:
            return self._read(path, error.status, error.encode())
        return self._read(path, answer.status, answer.body)
