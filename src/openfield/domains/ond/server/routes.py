"""The requests of the protocol: a handler for each, the table of addresses they are found at, and their description.

Between `app.py`, which reads requests and sends responses, and `session_service.py`, which knows sessions and tests.
Nothing here needs a socket. The signature of a handler is its list of parameters. Its OpenAPI description is made from
it; it is served at `/openapi.json`, and as a page at `/docs`.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from openfield.domains.ond.actions import Buy
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.session_service import SessionService
from openfield.domains.ond.testset.results import TYPES

Parameters = Mapping[str, Any]
Name = Annotated[str, Meta(min_length=1)]
"""A text that must be there."""
Round = Annotated[int, Meta(ge=0, le=10**9)]
"""The number of a round, also as digits."""
Object = Annotated[dict[str, Any], Meta(extra_json_schema={"type": "string"})]
"""A JSON object, also as text."""
Text = Annotated[Any, Meta(extra_json_schema={"type": "string"})]
"""A value as it came: a text from forms and queries, any JSON from a JSON body."""


class Operation:
    """A request of the protocol: its handler, and the parameters in the handler's signature."""

    def __init__(self, handler: Callable[..., Awaitable[Any]]) -> None:
        """Read the signature of a handler."""
        hints = get_type_hints(handler, include_extras=True)
        _, *parameters = inspect.signature(handler).parameters.values()
        named = [one for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]
        self.handler = handler
        self.types = {one.name: hints[one.name] for one in named}
        self.required = [one.name for one in named if one.default is inspect.Parameter.empty]
        self.takes_files = len(named) < len(parameters)
        self._names = [name for name in self.required if self.types[name] == Name]

    def bind(self, given: Parameters) -> dict[str, Any]:
        """Return the arguments of the handler; refuse if one is missing or cannot be read."""
        need(given, *self._names)
        if wrong := [name for name in self._names if not isinstance(given[name], str)]:
            raise Refusal("BadRequest", f"{', '.join(wrong)} must be text.")
        found = {name: given[name] for name in self.types if given.get(name) is not None}
        for name in self.required:
            if self.types[name] != Name:
                (value,) = need(given, name)
                found[name] = read_round(value) if self.types[name] == Round else read_object(value, name)
        if self.takes_files:
            found |= {name: value for name, value in given.items() if name.endswith("_file")}
        return found


def read_round(value: Any) -> int:
    """Return the number of a round, given as a number or as its digits."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 12:
        return int(value)
    raise Refusal("BadRequest", "round_id must be a whole number from 0 on.")


def need(given: Parameters, *names: str) -> list[Any]:
    """Return parameters that must be there."""
    if missing := [name for name in names if given.get(name) in (None, "")]:
        raise Refusal("MissingParamsError", f"Missing: {', '.join(missing)}.")
    return [given[name] for name in names]


def read_object(value: Any, name: str) -> dict[str, Any]:
    """Return a JSON object, given as text, as bytes or already read."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str | bytes) else value
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Refusal("BadRequest", f"{name} is not JSON.") from None
    if not isinstance(found, dict):
        raise Refusal("BadRequest", f"{name} must be a JSON object.")
    return found


IMAGES = "image_classification"
"""The domain of a request that names none."""
Seed = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "integer"})]


class ApiResponse(msgspec.Struct, frozen=True):
    """A response of the protocol."""

    body: bytes = b""
    status: int = 200
    media_type: str = "text/plain; charset=utf-8"
    headers: dict[str, str] = {}


class Api:
    """Answers the requests of the protocol."""

    def __init__(self, service: SessionService) -> None:
        self._service = service

    async def answer(self, method: str, path: str, given: Mapping[str, Any]) -> ApiResponse:
        """Answer a request of `OPERATIONS`; refuse one that has bad parameters, or is not allowed now."""
        operation = OPERATIONS[path]["GET" if method == "HEAD" else method]
        await self._service.dispatcher.recover()
        response: ApiResponse = await operation.handler(self, **operation.bind(given))
        return response

    async def list_tests(
        self,
        protocol: Text = None,
        domain: Text = None,
        detector_seed: Seed = None,
        test_requirements: Text = None,
        test_assumptions: Text = None,
    ) -> ApiResponse:
        """List the tests of a protocol and domain, given alone or as JSON in `test_requirements`."""
        asked: Mapping[str, Any] = {"protocol": protocol, "domain": domain}
        if test_requirements is not None:
            asked = read_object(test_requirements, "test_requirements")
            need(asked, "protocol", "domain", "detector_seed")
        elif protocol is None:
            raise Refusal("MissingRequestValue", "protocol is missing.")
        name, area = str(asked["protocol"]), str(asked.get("domain") or IMAGES)
        return _file(self._service.test_list(name, area), f"{name}_{area}_1234.csv", "attachment")

    async def open_session(
        self, configuration: Object, test_ids: Text = None, original_client: Text = None
    ) -> ApiResponse:
        """Open a session for some tests; with `original_client`, one by the original's rules, which is marked."""
        need(configuration, "protocol", "novelty_detector_version")
        listed = configuration.get("test_ids", test_ids)
        if listed is None:
            raise Refusal("MissingParamsError", "test_ids is missing.")
        lines = listed.split("\n") if isinstance(listed, str) else _read_texts(listed, "test_ids")
        tests = [name for name in (line.strip(" \t\r\n\"',") for line in lines) if name]
        if not tests:
            raise Refusal("EmptyFile", "The list of tests is empty.")
        return _json({"session_id": await self._service.open(configuration, tests, bool(original_client))})

    async def read_metadata(self, session_id: Name, test_id: Name) -> ApiResponse:
        """Return the metadata of a test that a client may see."""
        return _json(self._service.metadata(session_id, test_id))

    async def read_dataset(self, session_id: Name, test_id: Name, round_id: Round, resume: Text = None) -> ApiResponse:
        """Return the samples of a round. Round 0 starts a test again, unless `resume` is given."""
        body = await self._service.dataset(session_id, test_id, round_id, bool(resume))
        if body is None:
            return ApiResponse(status=204)
        wide = body[:2] in (b"\xff\xfe", b"\xfe\xff")  # texts come in utf-16, and say so
        kind = f"text/csv; charset={'utf-16' if wide else 'utf-8'}"
        return _file(body, f"{session_id}.{test_id}.{round_id}.csv", "inline", kind)

    async def post_results(self, test_identification: Object, **files: Text) -> ApiResponse:
        """Post the results of a round. `test_identification` names session, test, round and types of results."""
        asked = _read_identification(test_identification)
        kinds = asked["result_types"]
        if not isinstance(kinds, str):
            raise Refusal("MissingParamsError", "result_types must be a text such as 'detection|classification'.")
        await self._post(asked, kinds.split("|"), files)
        return ApiResponse(b"OK")

    async def post_and_ask(
        self, test_identification: Object, feedback_types: Text = None, feedback_ids: Text = None, **files: Text
    ) -> ApiResponse:
        """Post the results of a round and ask for feedback on them."""
        asked = _read_identification(test_identification)
        if isinstance(asked["result_types"], str):
            raise Refusal("MissingParamsError", "result_types must be a list.")
        wanted, ids = asked.get("feedback_types", feedback_types), asked.get("feedback_ids", feedback_ids)
        kinds = _read_texts(_split_list(wanted), "feedback_types") if wanted else []
        chosen = _read_texts(_split_list(ids), "feedback_ids") if ids else None
        posted = _read_texts(asked["result_types"], "result_types")
        await self._post(asked, posted, files, [Buy(kind, chosen) for kind in kinds])
        if not kinds:
            return ApiResponse(b"OK")
        return await self._feedback(asked["session_id"], asked["test_id"], str(asked["round_id"]), kinds, chosen)

    async def read_feedback(
        self, session_id: Name, test_id: Name, feedback_type: Name, feedback_ids: Text = None, round_id: Text = None
    ) -> ApiResponse:
        """Return feedback on answered samples. Lists of ids that are too long for an address come by POST."""
        ids = feedback_ids if isinstance(feedback_ids, list) else str(feedback_ids).split("|")
        chosen = _read_texts(ids, "feedback_ids") if feedback_ids else None
        return await self._feedback(session_id, test_id, str(round_id or "last"), feedback_type.split("|"), chosen)

    async def read_evaluation(
        self,
        session_id: Name,
        test_id: Name,
        devmode: Text = None,
        more: Text = None,
        baseline_session_id: Text = None,
        roundwise: Text = None,
        round_id: Text = None,
    ) -> ApiResponse:
        """Return the scores of a test, and further ones with `more`, `baseline_session_id` or `roundwise`."""
        if roundwise:
            (number,) = need({"round_id": round_id}, "round_id")
            return _json(await self._service.evaluate_round(session_id, test_id, read_round(number), bool(devmode)))
        baseline = str(baseline_session_id or "")
        return _json(await self._service.evaluate(session_id, test_id, bool(devmode), bool(more), baseline))

    async def complete_test(self, session_id: Name, test_id: Name) -> ApiResponse:
        """Complete a test."""
        await self._service.complete(session_id, test_id)
        return ApiResponse(b"OK")

    async def end_session(self, session_id: Name) -> ApiResponse:
        """End a session."""
        await self._service.end(session_id)
        return ApiResponse(b"OK")

    async def read_status(
        self,
        after: Text = None,
        session_id: Text = None,
        include_tests: Text = None,
        test_ids: Text = None,
        detector: Text = None,
    ) -> ApiResponse:
        """List sessions, or with `include_tests` their tests, one per line."""
        tests = str(test_ids).split("|") if test_ids else None
        given = {"after": after, "session_id": session_id, "detector": detector}
        wanted = {key: str(value) for key, value in given.items() if value}
        lines = await self._service.status(wanted, bool(include_tests), tests)
        if not lines and session_id:
            return ApiResponse()  # an unknown session, as the original's server answers
        return ApiResponse(("\n".join(lines) + "\n").encode())

    async def read_latest(self, session_id: Name, rounds: Text = None) -> ApiResponse:
        """Return the finished tests of a session, and with `rounds` the next round of the others."""
        return _json(await self._service.latest(session_id, bool(rounds)))

    async def read_zip(self, session_id: Name, test_id: Text = None) -> ApiResponse:
        """Return all that was posted in a session as a zip file."""
        tests = str(test_id).split("|") if test_id else None
        return _file(await self._service.zip(session_id, tests), f"{session_id}.zip", "attachment", "application/zip")

    async def _post(
        self, asked: Mapping[str, Any], kinds: list[str], files: Mapping[str, Any], then: Sequence[Buy] = ()
    ) -> None:
        results: dict[str, Any] = {kind: files.get(f"{kind}_file") for kind in kinds}
        for kind, text in results.items():
            if not isinstance(text, str):
                raise Refusal("MissingParamsError", f"{kind[:40]}_file is missing.")
        number = read_round(asked["round_id"])
        await self._service.post(asked["session_id"], asked["test_id"], number, results, then)

    async def _feedback(
        self, session: str, test: str, number: str, kinds: list[str], ids: list[str] | None
    ) -> ApiResponse:
        named = list(dict.fromkeys(kinds))
        bodies = await self._service.feedback(session, test, named, ids)
        files = [f"{session}.{test}.{number}_{kind}.csv" for kind in named]
        if len(named) == 1:
            return _file(bodies[0], files[0], "attachment")
        return _multipart(list(zip(named, files, bodies, strict=True)))


OPERATIONS: dict[str, dict[str, Operation]] = {
    "/test/ids": {"GET": Operation(Api.list_tests)},
    "/session": {"POST": Operation(Api.open_session), "DELETE": Operation(Api.end_session)},
    "/test/metadata": {"GET": Operation(Api.read_metadata)},
    "/session/dataset": {"GET": Operation(Api.read_dataset)},
    "/session/results": {"POST": Operation(Api.post_results)},
    "/session/feedback": {"GET": Operation(Api.read_feedback), "POST": Operation(Api.read_feedback)},
    "/session/resultsfeedback": {"POST": Operation(Api.post_and_ask)},
    "/session/evaluations": {"GET": Operation(Api.read_evaluation)},
    "/test": {"DELETE": Operation(Api.complete_test)},
    "/session/status": {"GET": Operation(Api.read_status)},
    "/session/latest": {"GET": Operation(Api.read_latest)},
    "/session/zip": {"GET": Operation(Api.read_zip)},
}
"""Address -> method -> request."""


def _read_identification(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what posted results are about, with the session and the test as text."""
    need(asked, "session_id", "test_id", "round_id", "result_types")
    return asked | {key: str(asked[key]) for key in ("session_id", "test_id")}


def _read_texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list):
        raise Refusal("BadRequest", f"{name} must be a list.")
    return [str(one) for one in value]


def _split_list(value: Any) -> Any:
    """Return a list that came as text: as JSON, or joined by bars."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value.split("|")


def _json(value: Any) -> ApiResponse:
    return ApiResponse(msgspec.json.encode(value, order="sorted"), media_type="application/json")


def _file(body: bytes, name: str, disposition: str, kind: str = "text/csv; charset=utf-8") -> ApiResponse:
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\;' else "_" for c in name)[:200]
    return ApiResponse(body, 200, kind, {"content-disposition": f'{disposition}; filename="{plain}"'})


def _multipart(parts: list[tuple[str, str, bytes]]) -> ApiResponse:
    border = secrets.token_hex(16)
    body = b"".join(
        f'--{border}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n'
        "Content-Type: text/csv\r\n\r\n".encode()
        + content
        + b"\r\n"
        for name, file, content in parts
    )
    return ApiResponse(body + f"--{border}--\r\n".encode(), 200, f"multipart/form-data; boundary={border}")


RESPONSES = {
    "list_tests": ("text/csv",),
    "open_session": ("application/json",),
    "read_metadata": ("application/json",),
    "read_dataset": ("text/csv",),
    "read_feedback": ("text/csv", "multipart/form-data"),
    "post_and_ask": ("text/plain", "text/csv", "multipart/form-data"),
    "read_evaluation": ("application/json",),
    "read_latest": ("application/json",),
    "read_zip": ("application/zip",),
}
"""Handler -> content types of its responses; plain text where nothing is said."""
ERROR = {
    "type": "object",
    "required": ["reason", "message", "stack_trace"],
    "properties": {key: {"type": "string"} for key in ("reason", "message", "stack_trace")},
}


def describe() -> dict[str, Any]:
    """Return the OpenAPI description."""
    paths = {
        path: {method.lower(): _describe_operation(method, operation) for method, operation in operations.items()}
        for path, operations in OPERATIONS.items()
    }
    return {"openapi": "3.1.0", "info": {"title": "openfield ond", "version": "1"}, "paths": paths}


def _describe_operation(method: str, operation: Operation) -> dict[str, Any]:
    types, required = dict(operation.types), operation.required
    if operation.takes_files:
        types |= {f"{kind}_file": Text for kind in TYPES}
    schemas = {name: msgspec.json.schema(annotation) for name, annotation in types.items()}
    found: dict[str, Any] = {
        "summary": operation.handler.__doc__,
        "operationId": f"{operation.handler.__name__}_{method.lower()}",
        "responses": _describe_responses(operation.handler.__name__),
    }
    if method == "POST":
        schema = {"type": "object", "properties": schemas, "required": required}
        return found | {"requestBody": {"content": {"multipart/form-data": {"schema": schema}}, "required": True}}
    parameters = [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in schemas.items()
    ]
    return found | {"parameters": parameters}


def _describe_responses(handler: str) -> dict[str, Any]:
    error = {"description": "refused", "content": {"application/json": {"schema": ERROR}}}
    kinds = RESPONSES.get(handler, ("text/plain",))
    content = {kind: {"schema": {"type": "object"} if kind == "application/json" else {}} for kind in kinds}
    found: dict[str, Any] = {"200": {"description": "done", "content": content}, "400": error, "500": error}
    return found | ({"204": {"description": "past the end of the test"}} if handler == "read_dataset" else {})
