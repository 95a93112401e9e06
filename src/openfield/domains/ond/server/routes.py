"""The protocol's thirteen requests, as calls on values: parameters in, an answer out, no socket anywhere.

Stands between `http.py`, which does the talking, and the dispatcher, whose remotes hold rollouts. `service` knows what
sessions and tests are; this file knows what requests look like.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from openfield.domains.ond.actions import Buy
from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.parameters import (
    Parameters,
    need,
    need_texts,
    read_identification,
    read_list,
    read_object,
    read_round,
    split_list,
)
from openfield.domains.ond.server.service import Office


class Answer(msgspec.Struct, frozen=True):
    """What goes back to a client."""

    body: bytes = b""
    status: int = 200
    type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[["Responder", Parameters], Awaitable[Answer]]


class Responder:
    """Answers requests."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def answer(self, method: str, path: str, parameters: Parameters) -> Answer:
        """The answer to a request; refusals are answers too."""
        try:
            handler = find_handler(method, path)
            await self._office.recover()
            return await handler(self, parameters)
        except Refusal as error:
            return refuse(error)

    async def list_tests(self, given: Parameters) -> Answer:
        """GET /test/ids."""
        if given.get("test_requirements") is not None:
            asked = read_object(given["test_requirements"], "test_requirements")
            need(asked, "protocol", "domain", "detector_seed")
        elif given.get("protocol") is None:
            raise Refusal("MissingRequestValue", "protocol is missing.")
        else:
            asked = dict(given)
        protocol, area = str(asked["protocol"]), str(asked.get("domain") or "image_classification")
        body = self._office.test_list(protocol, area)
        return _file(body, f"{protocol}_{area}_1234.csv", "attachment")

    async def open_session(self, given: Parameters) -> Answer:
        """POST /session."""
        need(given, "configuration")
        asked = read_object(given["configuration"], "configuration")
        need(asked, "protocol", "novelty_detector_version")
        listed = asked.get("test_ids", given.get("test_ids"))
        if listed is None:
            raise Refusal("MissingParamsError", "test_ids is missing.")
        lines = listed.split("\n") if isinstance(listed, str) else [str(line) for line in read_list(listed, "test_ids")]
        tests = [name for name in (line.strip(" \t\r\n\"',") for line in lines) if name]
        if not tests:
            raise Refusal("EmptyFile", "The list of tests is empty.")
        return _json({"session_id": await self._office.open(asked, tests)})

    async def read_metadata(self, given: Parameters) -> Answer:
        """GET /test/metadata."""
        session, test = need_texts(given, "session_id", "test_id")
        return _json(self._office.metadata(session, test))

    async def read_dataset(self, given: Parameters) -> Answer:
        """GET /session/dataset; with `resume`, round 0 does not start the test again."""
        session, test = need_texts(given, "session_id", "test_id")
        (number,) = need(given, "round_id")
        body = await self._office.dataset(session, test, read_round(number), bool(given.get("resume")))
        if body is None:
            return Answer(status=204)
        wide = body[:2] in (b"\xff\xfe", b"\xfe\xff")  # texts come in utf-16, and say so
        kind = f"text/csv; charset={'utf-16' if wide else 'utf-8'}"
        return _file(body, f"{session}.{test}.{number}.csv", "inline", kind)

    async def post_results(self, given: Parameters) -> Answer:
        """POST /session/results."""
        asked = read_identification(given)
        kinds = asked["result_types"]
        if not isinstance(kinds, str):
            raise Refusal("MissingParamsError", "result_types must be a text such as 'detection|classification'.")
        await self._post(given, asked, kinds.split("|"))
        return Answer(b"OK")

    async def post_and_ask(self, given: Parameters) -> Answer:
        """POST /session/resultsfeedback."""
        asked = read_identification(given)
        if isinstance(asked["result_types"], str):
            raise Refusal("MissingParamsError", "result_types must be a list.")
        wanted, ids = (asked.get(name, given.get(name)) for name in ("feedback_types", "feedback_ids"))
        kinds = read_list(split_list(wanted), "feedback_types") if wanted else []
        chosen = [str(key) for key in read_list(split_list(ids), "feedback_ids")] if ids else None
        posted = read_list(asked["result_types"], "result_types")
        await self._post(given, asked, posted, [Buy(str(kind), chosen) for kind in kinds])
        if not kinds:
            return Answer(b"OK")
        return await self._feedback(asked["session_id"], asked["test_id"], str(asked["round_id"]), kinds, chosen)

    async def read_feedback(self, given: Parameters) -> Answer:
        """GET /session/feedback; POST as well, for lists of ids too long for an address."""
        session, test, kinds = need_texts(given, "session_id", "test_id", "feedback_type")
        ids = given.get("feedback_ids")
        chosen = (read_list(ids, "feedback_ids") if isinstance(ids, list) else str(ids).split("|")) if ids else None
        number = str(given.get("round_id") or "last")
        return await self._feedback(session, test, number, kinds.split("|"), chosen)

    async def read_evaluation(self, given: Parameters) -> Answer:
        """GET /session/evaluations; with `more`, `baseline_session_id` or `roundwise`, further numbers."""
        session, test = need_texts(given, "session_id", "test_id")
        devmode, baseline = bool(given.get("devmode")), given.get("baseline_session_id")
        grades = self._office.grades
        if given.get("roundwise"):
            (number,) = need(given, "round_id")
            return _json(await grades.of_round(session, test, read_round(number), devmode))
        found = await grades.whole(session, test, devmode)
        if given.get("more"):
            found |= await grades.more(session, test, devmode)
        if baseline:
            found |= await grades.reaction(session, str(baseline), test, devmode)
        return _json(found)

    async def complete_test(self, given: Parameters) -> Answer:
        """DELETE /test."""
        session, test = need_texts(given, "session_id", "test_id")
        await self._office.complete(session, test)
        return Answer(b"OK")

    async def end_session(self, given: Parameters) -> Answer:
        """DELETE /session."""
        (session,) = need_texts(given, "session_id")
        await self._office.end(session)
        return Answer(b"OK")

    async def read_status(self, given: Parameters) -> Answer:
        """GET /session/status."""
        tests = str(given["test_ids"]).split("|") if given.get("test_ids") else None
        wanted = {key: str(given[key]) for key in ("after", "session_id", "detector") if given.get(key)}
        lines = await self._office.status(wanted, bool(given.get("include_tests")), tests)
        return Answer("".join(f"{line}\n" for line in lines).encode())

    async def read_latest(self, given: Parameters) -> Answer:
        """GET /session/latest."""
        (session,) = need_texts(given, "session_id")
        return _json(await self._office.latest(session))

    async def read_zip(self, given: Parameters) -> Answer:
        """GET /session/zip."""
        (session,) = need_texts(given, "session_id")
        tests = str(given["test_id"]).split("|") if given.get("test_id") else None
        body = await self._office.zip(session, tests)
        return _file(body, f"{session}.zip", "attachment", "application/zip")

    async def _post(
        self, given: Parameters, asked: Mapping[str, Any], kinds: list[Any], then: Sequence[Buy] = ()
    ) -> None:
        results: dict[str, str] = {}
        for kind in kinds:
            text = given.get(f"{kind}_file")
            if not isinstance(text, str):
                raise Refusal("MissingParamsError", f"{str(kind)[:40]}_file is missing.")
            results[str(kind)] = text
        number = read_round(asked["round_id"])
        await self._office.post(asked["session_id"], asked["test_id"], number, results, then)

    async def _feedback(self, session: str, test: str, number: str, kinds: list[Any], ids: list[Any] | None) -> Answer:
        named = list(dict.fromkeys(str(kind) for kind in kinds))
        bodies = await self._office.feedback(session, test, named, None if ids is None else [str(key) for key in ids])
        parts = [
            (kind, f"{session}.{test}.{number}_{kind}.csv", body) for kind, body in zip(named, bodies, strict=True)
        ]
        if len(parts) == 1:
            return _file(parts[0][2], parts[0][1], "attachment")
        return _multipart(parts)


HANDLERS: dict[str, dict[str, Handler]] = {
    "/test/ids": {"GET": Responder.list_tests},
    "/session": {"POST": Responder.open_session, "DELETE": Responder.end_session},
    "/test/metadata": {"GET": Responder.read_metadata},
    "/session/dataset": {"GET": Responder.read_dataset},
    "/session/results": {"POST": Responder.post_results},
    "/session/feedback": {"GET": Responder.read_feedback, "POST": Responder.read_feedback},
    "/session/resultsfeedback": {"POST": Responder.post_and_ask},
    "/session/evaluations": {"GET": Responder.read_evaluation},
    "/test": {"DELETE": Responder.complete_test},
    "/session/status": {"GET": Responder.read_status},
    "/session/latest": {"GET": Responder.read_latest},
    "/session/zip": {"GET": Responder.read_zip},
}


def find_handler(method: str, path: str) -> Handler:
    """What answers a request."""
    offered = HANDLERS.get(path.rstrip("/") or "/")
    if offered is None:
        raise Refusal("NotFound", "There is nothing at this address.", 404)
    handler = offered.get("GET" if method == "HEAD" else method)
    if handler is None:
        allowed = ", ".join(offered)
        raise Refusal("MethodNotAllowed", f"This address answers {allowed}.", 405, allowed)
    return handler


def refuse(error: Refusal) -> Answer:
    """The protocol's error object; clients insist on all three keys."""
    body = {"reason": error.reason, "message": str(error), "stack_trace": ""}
    headers = (("allow", error.allow),) if error.allow else ()
    return Answer(msgspec.json.encode(body), error.status, "application/json", headers)


def _json(value: Any) -> Answer:
    return Answer(msgspec.json.encode(value, order="sorted"), type="application/json")


def _file(body: bytes, name: str, disposition: str, kind: str = "text/csv; charset=utf-8") -> Answer:
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\;' else "_" for c in name)[:200]
    return Answer(body, type=kind, headers=(("content-disposition", f'{disposition}; filename="{plain}"'),))


def _multipart(parts: list[tuple[str, str, bytes]]) -> Answer:
    border = secrets.token_hex(16)
    body = b"".join(
        f'--{border}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n'
        "Content-Type: text/csv\r\n\r\n".encode()
        + content
        + b"\r\n"
        for name, file, content in parts
    )
    return Answer(body + f"--{border}--\r\n".encode(), type=f"multipart/form-data; boundary={border}")
