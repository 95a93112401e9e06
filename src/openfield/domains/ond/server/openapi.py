"""What the server publishes about itself: an OpenAPI document made from the table of requests.

Wire -> document; tools that read OpenAPI can try every address. Tests hold the server against it.
"""

from __future__ import annotations

from typing import Any

from openfield.domains.ond.server.routes import HANDLERS

TEXT: dict[str, Any] = {"type": "string"}
FILLED = TEXT | {"minLength": 1}
SCHEMAS = {"round_id": {"type": "integer", "minimum": 0, "maximum": 10**9}, "detector_seed": {"type": "integer"}}
"""What is more than any text."""
PARAMETERS = {
    "/test/ids": ("protocol", "domain", "detector_seed", "test_requirements", "test_assumptions"),
    "/test/metadata": ("session_id*", "test_id*"),
    "/session/dataset": ("session_id*", "test_id*", "round_id*", "resume"),
    "/session/feedback": ("session_id*", "test_id*", "feedback_type*", "feedback_ids", "round_id"),
    "/session/evaluations": ("session_id*", "test_id*", "devmode", "more", "baseline_session_id", "roundwise"),
    "/test": ("session_id*", "test_id*"),
    "/session": ("session_id*",),
    "/session/status": ("after", "session_id", "include_tests", "test_ids", "detector"),
    "/session/latest": ("session_id*",),
    "/session/zip": ("session_id*", "test_id"),
}
"""Of requests without a body; a star marks what must be there."""
PARTS = {
    "/session": ("configuration*", "test_ids"),
    "/session/results": ("test_identification*", "detection_file", "classification_file", "characterization_file"),
    "/session/resultsfeedback": ("test_identification*", "detection_file", "classification_file"),
    "/session/feedback": ("session_id*", "test_id*", "feedback_type*", "feedback_ids", "round_id"),
}
ANSWERS = {
    "/test/ids": ("text/csv",),
    "/test/metadata": ("application/json",),
    "/session/dataset": ("text/csv",),
    "/session/feedback": ("text/csv", "multipart/form-data"),
    "/session/resultsfeedback": ("text/plain", "text/csv", "multipart/form-data"),
    "/session/evaluations": ("application/json",),
    "/session/latest": ("application/json",),
    "/session/zip": ("application/zip",),
}
"""What comes back; where nothing is said, plain text."""
ERROR = {
    "type": "object",
    "required": ["reason", "message", "stack_trace"],
    "properties": dict.fromkeys(("reason", "message", "stack_trace"), TEXT),
}


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    paths = {path: {method.lower(): _operation(path, method) for method in HANDLERS[path]} for path in HANDLERS}
    return {"openapi": "3.1.0", "info": {"title": "openfield ond", "version": "1"}, "paths": paths}


def _operation(path: str, method: str) -> dict[str, Any]:
    doc = (HANDLERS[path][method].__doc__ or "").strip()
    found: dict[str, Any] = {"summary": doc, "responses": _responses(path, method)}
    if method == "POST":
        parts = {name.rstrip("*"): TEXT for name in PARTS[path]}
        wanted = [name.rstrip("*") for name in PARTS[path] if name.endswith("*")]
        schema = {"type": "object", "properties": parts, "required": wanted}
        found["requestBody"] = {"content": {"multipart/form-data": {"schema": schema}}, "required": True}
    else:
        found["parameters"] = [_parameter(name) for name in PARAMETERS[path]]
    return found


def _parameter(name: str) -> dict[str, Any]:
    plain, needed = name.rstrip("*"), name.endswith("*")
    schema = SCHEMAS.get(plain, FILLED if needed else TEXT)  # what need not be there may be empty, which says the same
    return {"name": plain, "in": "query", "required": needed, "schema": schema}


def _responses(path: str, method: str) -> dict[str, Any]:
    error = {"description": "refused", "content": {"application/json": {"schema": ERROR}}}
    kinds = ANSWERS.get(path, ("text/plain",))
    if (path, method) == ("/session", "POST"):
        kinds = ("application/json",)
    done = {"description": "done", "content": {kind: {"schema": _body(kind)} for kind in kinds}}
    answers: dict[str, Any] = {"200": done, "400": error, "500": error}
    return answers | ({"204": {"description": "past the end of the test"}} if path == "/session/dataset" else {})


def _body(kind: str) -> dict[str, Any]:
    return {"type": "object"} if kind == "application/json" else {}
