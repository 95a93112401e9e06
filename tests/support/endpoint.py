"""A local OpenAI-compatible endpoint that can be slow, limit the rate, break off, and answer nonsense."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True)
class Status:
    """An answer that is an error."""

    code: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "refused"


@dataclass(frozen=True)
class Raw:
    """Bytes that stand in for a whole answer; `announced` bytes are promised, the rest never comes."""

    body: bytes
    announced: int = 0


@dataclass(frozen=True)
class Stalled:
    """The head of an answer and a few bytes, and then nothing until the peer gives up."""


@dataclass(frozen=True)
class Streamed:
    """An answer in pieces, as events."""

    text: str


Answer = str | Status | Raw | Stalled | Streamed
Responder = Callable[[Request], Answer]


@dataclass
class Endpoint:
    """What was asked, and where."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


def reply(**values: Any) -> str:
    """An answer as a good model gives it."""
    return json.dumps({"reasoning": "because", **values})


def last_message(request: Request) -> str:
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def obedient(action: Any = "up", belief: float = 0.25) -> Responder:
    """Answers what it is asked for."""

    def respond(request: Request) -> str:
        asked = last_message(request).rpartition("Answer with")[2]
        told: dict[str, Any] = {"action": action} if '"action"' in asked else {}
        return reply(**told, **({"world_changed": belief} if '"world_changed"' in asked else {}))

    return respond


@contextmanager
def serving(respond: Responder, seconds: float = 0.0, usage: bool = True) -> Iterator[Endpoint]:
    """Serves an endpoint on a free port."""
    endpoint, lock = Endpoint(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                endpoint.requests.append(request)
                endpoint.moments.append(time.monotonic())
                endpoint.keys.append(self.headers.get("Authorization", ""))
                answer = respond(request)
            time.sleep(seconds)
            if isinstance(answer, Status):
                self.send(answer.code, json.dumps({"error": {"message": answer.message}}).encode(), answer.headers)
            elif isinstance(answer, Stalled):
                self.send(200, b'{"choices"', {}, 500)
                self.rfile.read(1)  # until the peer closes the connection
                self.close_connection = True
            elif isinstance(answer, Streamed):
                pieces = [answer.text[start : start + 7] for start in range(0, len(answer.text), 7)]
                events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
                told = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}
                lines = [f"data: {json.dumps(each)}\n\n" for each in (*events, told)]
                self.send(200, "".join([*lines, "data: [DONE]\n\n"]).encode(), {"Content-Type": "text/event-stream"})
            elif isinstance(answer, Raw):
                self.send(200, answer.body, {}, answer.announced)
                self.close_connection = True
            else:
                self.send(200, json.dumps(complete(request, answer, usage)).encode(), {})

        def send(self, code: int, body: bytes, headers: dict[str, str], announced: int = 0) -> None:
            self.send_response(code)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(announced or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def complete(request: Request, text: str, usage: bool) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "reasoning_content": "hm"}
    told = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        **({"usage": told} if usage else {}),
    }
