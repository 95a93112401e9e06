"""The requests of the protocol: a handler for each, and the table of addresses they are found at.

Between `app.py`, which reads requests and sends responses, and `service.py`, which knows sessions and tests. Nothing
here needs a socket. The signature of a handler is its list of parameters; `openapi.py` describes the requests from it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from openfield.domains.ond.actions import Buy
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.parameters import Name, Object, Operation, Round, Text, need, read_object, read_round
from openfield.domains.ond.server.session_service import SessionService

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
        """Answer a request; refuse one that does not exist, has bad parameters, or is not allowed now."""
        operation = find_operation(method, path)
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

    async def open_session(self, configuration: Object, test_ids: Text = None) -> ApiResponse:
        """Open a session for some tests."""
        need(configuration, "protocol", "novelty_detector_version")
        listed = configuration.get("test_ids", test_ids)
        if listed is None:
            raise Refusal("MissingParamsError", "test_ids is missing.")
        lines = listed.split("\n") if isinstance(listed, str) else _read_texts(listed, "test_ids")
        tests = [name for name in (line.strip(" \t\r\n\"',") for line in lines) if name]
        if not tests:
            raise Refusal("EmptyFile", "The list of tests is empty.")
        return _json({"session_id": await self._service.open(configuration, tests)})

    async def read_metadata(self, session_id: Name, test_id: Name) -> ApiResponse:
        """Return what a client may know of a test."""
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
        return ApiResponse("".join(f"{line}\n" for line in lines).encode())

    async def read_latest(self, session_id: Name) -> ApiResponse:
        """Return the finished tests of a session, and the next round of the others."""
        return _json(await self._service.latest(session_id))

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


def find_operation(method: str, path: str) -> Operation:
    """Return the request of a method and an address."""
    offered = OPERATIONS.get(path.rstrip("/") or "/")
    if offered is None:
        raise Refusal("NotFound", "There is nothing at this address.", 404)
    operation = offered.get("GET" if method == "HEAD" else method)
    if operation is None:
        allowed = ", ".join(offered)
        raise Refusal("MethodNotAllowed", f"This address answers {allowed}.", 405, {"allow": allowed})
    return operation


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
