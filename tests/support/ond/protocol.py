"""A client of the protocol as small as can be, over an application in this process or over a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import msgspec
import numpy as np
from starlette.types import ASGIApp

from openfield.domains.ond import DOMAIN
from openfield.domains.ond.server.app import make_rest_app
from openfield.domains.ond.server.http import HttpConnection, make_config
from openfield.domains.ond.server.session_service import HINT_LIMITS, ServiceRules, SessionService
from openfield.domains.ond.server.wire import TeamApis
from openfield.domains.ond.testset.data_directory import METADATA_SUFFIX, TABLE_SUFFIX, DataDirectory
from openfield.domains.ond.testset.test import Test
from openfield.journal.writer import Journal
from openfield.serving.sessions import SessionDispatcher

TEST = "OND.1.0000.7"
OTHER = "OND.1.0001.8"
KNOWN = 4
REQUESTS = [
    ("GET", "/test/metadata", {}),
    ("GET", "/session/dataset", {"round_id": "0"}),
    ("GET", "/session/feedback", {"feedback_type": "classification"}),
    ("DELETE", "/test", {}),
    ("DELETE", "/session", {}),
    ("GET", "/session/latest", {}),
    ("GET", "/session/zip", {}),
]
"""What is asked about a session, and what each wants to know besides."""


def write_test(root: Path, name: str = TEST, count: int = 30, size: int = 10, onset: int = 15, **facts: object) -> None:
    """An image test: known classes 1..4 in turn, every second sample novel (class 0) from the onset on."""
    place = root / "OND" / "image_classification"
    place.mkdir(parents=True, exist_ok=True)
    novel = [int(at >= onset and (at - onset) % 2 == 0) for at in range(count)]
    rows = [f"{name}-{at}.png,{new},{0 if new else 1 + at % KNOWN}\n" for at, new in enumerate(novel)]
    (place / f"{name}{TABLE_SUFFIX}").write_text("id,novel,class\n" + "".join(rows))
    metadata = {"protocol": "OND", "known_classes": KNOWN, "round_size": size, "feedback_max_ids": 3} | facts
    metadata = {"threshold": 0.5} | metadata | {"red_light": f"{name}-{onset}.png", "difficulty": "secret"}
    (place / f"{name}{METADATA_SUFFIX}").write_bytes(
        msgspec.json.encode({key: v for key, v in metadata.items() if v is not None})
    )


class Requests:
    """The protocol's requests, to whichever server `ask` reaches."""

    directory: DataDirectory

    def ask(self, method: str, path: str, **request: object) -> httpx.Response:
        raise NotImplementedError

    def ask_at_once(self, requests: list[tuple[str, str, dict[str, object]]]) -> list[httpx.Response]:
        """Several requests in parallel."""
        raise NotImplementedError

    def open(self, *tests: str, hints: tuple[str, ...] = (), any_order: bool = False, **changes: object) -> str:
        asked = {"protocol": "OND", "novelty_detector_version": "probe-1", "detection_threshold": 0.5}
        asked |= {"hints": list(hints), "domain": "image_classification"} | changes
        names = "\n".join(tests or (TEST,))
        files = {"configuration": msgspec.json.encode(asked), "test_ids": names.encode()}
        files |= {"original_client": b"1"} if any_order else {}
        answer = self.ask("POST", "/session", files=files)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["session_id"])

    def dataset(self, session: str, number: object, test: str = TEST) -> httpx.Response:
        asked = {"session_id": session, "test_id": test, "round_id": number}
        return self.ask("GET", "/session/dataset", params=asked)

    def post(self, session: str, number: object, test: str = TEST, **results: str | bytes) -> httpx.Response:
        asked = {"session_id": session, "test_id": test, "round_id": number, "result_types": "|".join(results)}
        files = {"test_identification": ("t.json", msgspec.json.encode(asked))}
        files |= {f"{kind}_file": (f"{kind}.csv", text) for kind, text in results.items()}  # type: ignore[misc]
        return self.ask("POST", "/session/results", files=files)

    def feedback(self, session: str, kind: str, test: str = TEST, **more: str) -> httpx.Response:
        asked = {"session_id": session, "test_id": test, "feedback_type": kind} | more
        return self.ask("GET", "/session/feedback", params=asked)

    def complete(self, session: str, test: str = TEST) -> httpx.Response:
        return self.ask("DELETE", "/test", params={"session_id": session, "test_id": test})

    def play(self, session: str, test: str = TEST, p: float = 0.9) -> None:
        """A whole test: perfect answers, the change seen when it comes."""
        known = self.directory.load("OND", "image_classification", test)[0]
        for number in range(known.rounds):
            ids = self.dataset(session, number, test).text.split()
            assert self.post(session, number, test, **answers(known, ids, p)).text == "OK"
        assert self.complete(session, test).text == "OK"


class Wires(asyncio.Transport):
    """What a connection writes to in place of a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closed, self.reads = b"", False, True

    def write(self, data: object) -> None:
        if not self.closed:
            self.written += bytes(data)  # type: ignore[call-overload]

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


def connect(app: ASGIApp) -> tuple[HttpConnection, Wires]:
    """A connection as a server has it, without a socket; to be made where an event loop runs."""
    server = SimpleNamespace(connections=set(), tasks=set(), default_headers=[(b"date", b"today")], total_requests=0)
    connection, wires = HttpConnection(config=make_config(app), server_state=server, app_state={}), Wires()
    connection.connection_made(wires)
    return connection, wires


class NoSocket(httpx.AsyncBaseTransport):
    """Hands requests to a connection byte by byte as they would come over a socket, and reads what it answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connection, wires = connect(self._app)
        head = b"".join(b"%b: %b\r\n" % header for header in request.headers.raw)
        connection.data_received(b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method.encode(), request.url.raw_path, head))
        if body := await request.aread():
            connection.data_received(body)
        try:
            await asyncio.gather(*connection.http.tasks)
        except asyncio.CancelledError:  # as by a server that ends, which cancels what it has not answered
            await asyncio.gather(*connection.http.tasks)
        connection.connection_lost(None)
        return read_answer(wires.written)


def read_answer(written: bytes) -> httpx.Response:
    """An answer as it was written."""
    head, _, content = written.partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    named = [(name, value) for name, _, value in (line.partition(b": ") for line in headers)]
    return httpx.Response(int(status.split()[1]), headers=named, content=content)


class Client(Requests):
    """Opens a run file and talks to an service over HTTP without a socket."""

    def __init__(
        self,
        root: Path,
        run: Path,
        compat: bool = False,
        token: str | None = None,
        devmode: bool = False,
        teams: Mapping[str, str] | None = None,
        hint_limits: Mapping[str, int] = HINT_LIMITS,
        scorings: int | None = None,
    ) -> None:
        self.directory, self.journal = DataDirectory(root), Journal(run)
        self.dispatcher = SessionDispatcher(self.journal, DOMAIN, token)
        rules = ServiceRules(compat, devmode, hint_limits, scorings, frozenset((teams or {}).values()))

        def make_service(dispatcher: SessionDispatcher, team: str | None) -> SessionService:
            return SessionService(dispatcher, self.directory, DOMAIN.version, rules, team)

        app = make_rest_app(TeamApis(self.dispatcher, make_service, teams or {}).find, ["ond"])
        self.loop = asyncio.new_event_loop()
        self.http = httpx.AsyncClient(transport=NoSocket(app), base_url="http://ond")

    def close(self, at_once: bool = False) -> None:
        """Stops the server; at once means as if killed: nothing is booked."""
        self.loop.run_until_complete(self.http.aclose())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        if not at_once:
            self.dispatcher.close()
        self.journal.close()

    def ask(self, method: str, path: str, **request: object) -> httpx.Response:
        return self.loop.run_until_complete(self.http.request(method, path, **request))  # type: ignore[arg-type]

    def ask_at_once(self, requests: list[tuple[str, str, dict[str, object]]]) -> list[httpx.Response]:
        async def ask_all() -> list[httpx.Response]:
            return await asyncio.gather(*(self.http.request(verb, path, **more) for verb, path, more in requests))  # type: ignore[arg-type]

        return self.loop.run_until_complete(ask_all())


class Caller(Requests):
    """Talks to a server in another process, over a real socket."""

    def __init__(self, root: Path, url: str) -> None:
        self.directory, self.url = DataDirectory(root), url
        self.http = httpx.Client(base_url=url, timeout=60)

    def close(self) -> None:
        self.http.close()

    def ask(self, method: str, path: str, **request: object) -> httpx.Response:
        return self.http.request(method, path, **request)  # type: ignore[arg-type]

    def ask_at_once(self, requests: list[tuple[str, str, dict[str, object]]]) -> list[httpx.Response]:
        with ThreadPoolExecutor(len(requests)) as pool:
            return list(pool.map(lambda one: self.ask(one[0], one[1], **one[2]), requests))


def known(client: Requests, test: str = TEST) -> Test:
    """A test with its truth."""
    return client.directory.load("OND", "image_classification", test)[0]


def answers(test: object, ids: list[str], p: float = 0.9) -> dict[str, str]:
    """Right answers: detection from the onset on, classes as they are."""
    index, labels, novel = test.index, test.labels, np.maximum.accumulate(test.novel)  # type: ignore[attr-defined]
    detection = "".join(f"{key},{p if novel[index[key]] else 0.1}\n" for key in ids)
    rows = []
    for key in ids:
        row = ["0.05"] * (KNOWN + 1)
        row[labels[index[key]]] = "0.8"
        rows.append(f"{key},{','.join(row)}\n")
    return {"detection": detection, "classification": "".join(rows)}


def refused(answer: httpx.Response, status: int, reason: str) -> str:
    """An error as clients understand it, without anything of the inside."""
    body = answer.json()
    assert (answer.status_code, body["reason"]) == (status, reason), answer.text
    assert body["message"]
    assert body["stack_trace"] == ""
    assert "/src/" not in answer.text
    assert "Traceback" not in answer.text
    return str(answer.json()["message"])
