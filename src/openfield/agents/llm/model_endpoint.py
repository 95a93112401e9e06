"""Ask an OpenAI-compatible endpoint: wait where it says so, try again where that helps, and report the cost.

All agents of a process that ask the same endpoint share one `ModelEndpoint`, and the processes of a machine share its
`RequestGate`, so that a rate limit that one of them meets holds for all.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple

import msgspec

from openfield.errors import AgentAway, AgentProtocol, AgentTimeout, InvalidInput
from openfield.lazy import import_extra

KEY, URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"
"""The environment variables of the key and of the address."""
SLICE_SECONDS = 0.25
"""How long a wait sleeps at a time: in between it says that it waits, and hears whether the run is stopped."""
MAX_BACKOFF = 30.0
MAX_ERROR = 300
"""Characters of a message of the endpoint that are kept."""
SECONDS, CONNECT_SECONDS = 600.0, 10.0
"""How long an answer and a connection may take where nothing else is said."""
TRIED_AGAIN = (0, 408, 409, 425, 500, 502, 503, 504, 520, 522, 524, 529)
"""Answers of a server that will be another one later; 0 is a connection that failed or broke off."""
TOKEN_CHARACTERS = 4
"""Characters of a token, where the endpoint does not count them."""
MAX_HOLD = 3_600.0
"""Seconds until a request at most, whatever the file says."""
_MOMENT = struct.Struct("<d")


class QuestionTooLong(Exception):
    """A question has more tokens than a model can read."""


class ModelQuestion(NamedTuple):
    """A question to an endpoint."""

    messages: Sequence[Mapping[str, Any]]
    schema: Mapping[str, Any] | None
    """The JSON schema of the answer, for endpoints that hold to it; None lets the model write as it likes."""
    options: Mapping[str, Any] = {}
    """Further fields of the request: temperature, seed, and so on."""
    seconds: float | None = None
    """How long an answer may take."""


class ModelAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An endpoint's answer, with its tokens and seconds."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    """Of the call that was answered. Waiting and failed calls are not counted."""
    thinking: str = ""
    """The model's reasoning before its answer, where the endpoint returns it."""
    counted: bool = True
    """Whether the endpoint counted the tokens; else they are estimated from the length of the texts."""
    failures: tuple[str, ...] = ()
    """Why earlier calls were made again."""


Wait = Callable[[int], None]
"""Called with nanoseconds in which an agent waited for others, and not for its own answer."""


class ModelEndpoint:
    """One model at one address. It may be used by many threads."""

    def __init__(self, model: str, url: str | None, key_env: str = KEY, rpm: float | None = None) -> None:
        """Connect to an endpoint; nothing is sent yet.

        Args:
            model: The name of the model there.
            url: The address; None is that of the environment, or of the client.
            key_env: The environment variable that holds the key.
            rpm: How many requests may be made a minute; None is as many as the endpoint takes.
        """
        openai = import_extra("openai", "llm", "An agent llm:MODEL")
        self.model = model
        self._errors = openai
        self._client = openai.OpenAI(
            base_url=url or os.environ.get(URL) or None, api_key=read_key(url, key_env), max_retries=0
        )
        self.address = str(self._client.base_url).rstrip("/")
        self._gate = RequestGate(f"{self.address} {model} {key_env}", 60.0 / rpm if rpm else 0.0)
        self._answered = False  # whether it has ever answered: if so, a refusal is the fault of a question
        self._structured = True  # whether it takes a schema
        self._streams = False  # whether it answers only piece by piece

    def ask(self, question: ModelQuestion, retries: int, patience: float, wait: Wait) -> ModelAnswer:
        """Return the answer to a question.

        Args:
            question: The question.
            retries: How often a call that fails is made again.
            patience: Seconds that may be spent on waiting because the endpoint is busy.
            wait: Called with all time that is spent on waiting and on failed calls.

        Raises:
            AgentAway: The endpoint cannot be reached, or refuses before it has answered anything.
            AgentProtocol: It refuses this question.
            AgentTimeout: The answer takes too long.
            QuestionTooLong: The question is longer than the model can read.
        """
        failures: list[str] = []
        left, waited = retries, 0.0
        while True:
            waited += self._await_turn(wait)
            began = time.monotonic()
            try:
                answer = self._call(question)
                self._answered = True
                return msgspec.structs.replace(answer, failures=tuple(failures))
            except (self._errors.APIError, ValueError) as caught:  # no answer, or a malformed one
                error = caught
            failures.append(_describe(error))
            status, headers = getattr(error, "status_code", 0), getattr(getattr(error, "response", None), "headers", {})
            if status == 429:
                self._gate.hold(_read_pause(headers) or _backoff(len(failures)))
            wait(int((time.monotonic() - began) * 1e9))
            if self._is_late(error):
                raise AgentTimeout(f"No answer of {self.model} within {question.seconds or SECONDS:g} s.")
            if status == 429:
                if waited > patience or "insufficient_quota" in str(getattr(error, "body", "")):
                    raise self._away(failures[-1])
            elif not (
                self._stops_asking_for_schema(status, failures[-1], question)
                or self._begins_to_stream(status, failures[-1])
            ):
                left = self._refuse(status, failures[-1], left)
                self._pause(_read_pause(headers) or _backoff(retries - left), wait)

    def _call(self, question: ModelQuestion) -> ModelAnswer:
        """Make one call."""
        options = dict(question.options)
        if question.schema is not None and self._structured:
            named = {"name": "reply", "schema": question.schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": named}
        began = time.monotonic()
        seconds = question.seconds or SECONDS
        timeout = self._errors.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        if self._streams:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        create = self._client.chat.completions.with_streaming_response.create
        with create(model=self.model, messages=question.messages, timeout=timeout, **options) as response:
            given = self._read(response)
        seconds = time.monotonic() - began
        message = _read_message(given)
        text = getattr(message, "content", None) or ""
        thinking = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or ""
        usage = getattr(given, "usage", None)
        tokens_in, written = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        counted = isinstance(tokens_in, int) and isinstance(written, int)
        if not counted:
            tokens_in, written = count_tokens(question.messages), len(f"{text}{thinking}") // TOKEN_CHARACTERS + 1
        return ModelAnswer(str(text), tokens_in or 0, written or 0, round(seconds, 6), str(thinking), counted)

    def _read(self, response: Any) -> Any:
        """Return the answer of an endpoint that has begun to answer, in one piece or in several.

        Raises:
            ValueError: It is not an answer, or it breaks off or stalls, and may be another one next time.
        """
        transport = import_module(type(response.http_response).__module__.partition(".")[0])  # httpx, or its successor
        try:
            if "text/event-stream" in response.headers.get("content-type", ""):
                return join_stream(response.iter_lines())
            return response.parse()
        except transport.TransportError as error:
            raise ValueError(f"its answer broke off: {error or type(error).__name__}") from error

    def _begins_to_stream(self, status: int, explanation: str) -> bool:
        """Return whether an endpoint refused a question because it answers only piece by piece: then it may."""
        if self._streams or status not in (400, 422, 501) or "stream" not in explanation.casefold():
            return False
        self._streams = True
        return True

    def _await_turn(self, wait: Wait) -> float:
        """Wait until a request may be made, and return how long that took."""
        began = time.monotonic()
        while left := self._gate.enter():
            self._pause(min(left * random.uniform(1.0, 1.1), SLICE_SECONDS), wait)
        return time.monotonic() - began

    def _pause(self, seconds: float, wait: Wait) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            slept = min(left, SLICE_SECONDS)
            time.sleep(slept)
            wait(int(slept * 1e9))

    def _is_late(self, error: Exception) -> bool:
        """Return whether an answer took too long. An endpoint that takes no connection is away instead."""
        late = isinstance(error, self._errors.APITimeoutError)
        return late and type(error.__cause__).__name__ not in ("ConnectTimeout", "PoolTimeout")

    def _refuse(self, status: int, explanation: str, left: int) -> int:
        """Return how many tries are left after a failure, or raise the error it means.

        Args:
            status: The status of the endpoint's answer; 0 without an answer.
            explanation: The endpoint's explanation.
            left: How many tries were left.
        """
        again = status in TRIED_AGAIN
        if again and left > 0:
            return left - 1
        if status == 400 and "context" in explanation.casefold():
            raise QuestionTooLong(explanation)
        if again or not self._answered or status in (401, 403, 404):
            raise self._away(explanation)
        raise AgentProtocol(f"{self.model} refuses the question: {explanation}")

    def _stops_asking_for_schema(self, status: int, explanation: str, question: ModelQuestion) -> bool:
        """Return whether an endpoint refused a question because of its schema: then none is sent any more."""
        named = "response_format" in explanation.casefold() or "schema" in explanation.casefold()
        if status not in (400, 404, 422, 501) or not named or question.schema is None or not self._structured:
            return False
        self._structured = False
        return True

    def _away(self, explanation: str) -> AgentAway:
        return AgentAway(f"{self.model} at {self.address} does not answer: {explanation.rstrip('.')}.")


@cache
def find_endpoint(model: str, url: str | None, key_env: str, rpm: float | None) -> ModelEndpoint:
    """Return the endpoint that all agents of this process share."""
    return ModelEndpoint(model, url, key_env, rpm)


def read_key(url: str | None, key_env: str) -> str:
    """Return the key. An address of one's own may want none.

    Raises:
        InvalidInput: There is no key.
    """
    key = os.environ.get(key_env, "").strip()
    if not key and key_env == KEY and (url or os.environ.get(URL)):
        return "none"
    if not key:
        raise InvalidInput(
            f"A language model needs a key or an address: set {key_env}, or name an endpoint that wants no key with "
            f"{URL} or llm:MODEL(url=http://HOST:PORT/v1)."
        )
    return key


def count_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Estimate the tokens of messages from their length; a picture counts as much as a page."""
    texts = [str(part.get("text", "x" * 3_000)) for each in messages for part in _parts(each["content"])]
    return sum(map(len, texts)) // TOKEN_CHARACTERS + 4 * len(messages)


def _describe(error: Exception) -> str:
    status, cause = getattr(error, "status_code", None), error.__cause__
    text = " ".join(str(error).split())
    if status is not None:
        return f"status {status}: {text[:MAX_ERROR]}"
    if isinstance(error, json.JSONDecodeError):
        return f"it does not send JSON: {error.doc[:80]!r}"
    return f"{text} ({' '.join(str(cause).split()) or type(cause).__name__})"[:MAX_ERROR] if cause else text[:MAX_ERROR]


def _parts(content: Any) -> list[Mapping[str, Any]]:
    return [{"text": content}] if isinstance(content, str) else content


class _Delta(msgspec.Struct):
    """A piece of an answer."""

    content: str | None = None
    reasoning_content: str | None = None


class _StreamChoice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _StreamEvent(msgspec.Struct):
    """An event of an answer that comes in pieces."""

    choices: list[_StreamChoice] | None = None
    usage: dict[str, Any] | None = None


def join_stream(lines: Iterable[str]) -> Any:
    """Return the answer that the events of a stream make together.

    Raises:
        ValueError: An event is malformed, or the stream breaks off.
    """
    pieces, usage, ended = list[_Delta](), dict[str, Any](), False
    for line in lines:
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            ended = ended or line.startswith("data:")
            continue
        try:
            event = msgspec.json.decode(data, type=_StreamEvent)
        except msgspec.MsgspecError:
            raise ValueError(f"its stream has a malformed event: {data[:80]!r}") from None
        usage = event.usage or usage
        for choice in event.choices or ():
            pieces.append(choice.delta)
            ended = ended or choice.finish_reason is not None
    if not ended:
        raise ValueError("its stream broke off")
    texts = ("".join(each.content or "" for each in pieces), "".join(each.reasoning_content or "" for each in pieces))
    message = _Delta(*texts)
    return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=SimpleNamespace(**usage))


def _read_message(given: Any) -> Any:
    """Return the message of an answer: an endpoint may send anything.

    Raises:
        ValueError: The answer has no message.
    """
    choices = getattr(given, "choices", None)
    message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    if message is None:
        raise ValueError(f"its answer has no message: {str(given)[:80]!r}")
    return message


def _read_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an endpoint asks to wait."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds <= 3_600:
            return seconds
    return None


def _backoff(failures: int) -> float:
    """Return how long to wait after a number of failures: longer each time, and not all at the same moment."""
    return float(min(0.25 * 2**failures, MAX_BACKOFF)) * random.uniform(0.5, 1.0)


class RequestGate:
    """Lets requests through one at a time, some seconds apart. It may be used by many threads and processes.

    All processes of a user on this machine share one limit: the moment of the next request stands in a small file,
    which they lock. Where there can be no such file, the limit holds within one process.
    """

    def __init__(self, name: str, seconds: float = 0.0) -> None:
        """Open nothing yet.

        Args:
            name: What the requests are to; gates of the same name share their limit.
            seconds: How far apart they are at least.
        """
        self._seconds, self._lock = min(seconds, MAX_HOLD), threading.Lock()
        self._name = hashlib.sha256(name.encode()).hexdigest()[:32]
        self._own: BinaryIO | None = None

    def enter(self) -> float:
        """Let a request through and return 0, or return for how many seconds there can be none."""
        if not (self._seconds or self._own or self._is_shared):
            return 0.0
        with self._locked() as file:
            left = _read_left(file)
            if not left and self._seconds:
                _write_left(file, self._seconds)
            return left

    def hold(self, seconds: float) -> None:
        """Let no request through for some seconds."""
        with self._locked() as file:
            _write_left(file, max(_read_left(file), min(seconds, MAX_HOLD)))

    @property
    def _is_shared(self) -> bool:
        """Whether any process has set a moment."""
        try:
            return (find_folder() / self._name).exists()
        except OSError:
            return False

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Give the file to one thread of one process at a time."""
        with self._lock:
            file = self._open()
            if file is self._own:
                yield file
                return
            import fcntl

            with file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file

    def _open(self) -> BinaryIO:
        """Open the common file anew each time: a forked process would share the lock of an open one."""
        if self._own is None:
            try:
                opened = os.open(
                    find_folder() / self._name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
                )
                return os.fdopen(opened, "r+b", buffering=0)
            except OSError:
                self._own = io.BytesIO()
        return self._own


def find_folder() -> Path:
    """Return the folder of the common files, which is made if it is missing.

    Raises:
        OSError: No folder belongs to this user alone.
    """
    if os.name != "posix":  # there is neither a lock for it nor a user number to look for
        raise OSError("no file can be shared here")
    given = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(given, "openfield") if given else Path(tempfile.gettempdir(), f"openfield-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise PermissionError(f"{folder} belongs to others")
    return folder


def _read_left(file: BinaryIO) -> float:
    """Return the seconds until the next request; 0 if the file says nothing that can be."""
    file.seek(0)
    data = file.read(_MOMENT.size)
    left = float(_MOMENT.unpack(data)[0]) - time.time() if len(data) == _MOMENT.size else 0.0
    return left if 0 < left <= MAX_HOLD else 0.0


def _write_left(file: BinaryIO, seconds: float) -> None:
    file.seek(0)
    file.write(_MOMENT.pack(time.time() + seconds))
