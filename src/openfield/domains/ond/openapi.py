"""What the server publishes about itself: an OpenAPI document made from the table of requests.

Wire -> document; tools that read OpenAPI can try every address.
"""

from __future__ import annotations

from typing import Any

from openfield.domains.ond.wire import HANDLERS

PARAMETERS = {
    "/test/ids": ("protocol", "domain", "detector_seed", "test_requirements", "test_assumptions"),
    "/test/metadata": ("session_id", "test_id"),
    "/session/dataset": ("session_id", "test_id", "round_id"),
    "/session/feedback": ("session_id", "test_id", "feedback_type", "feedback_ids", "round_id"),
    "/session/evaluations": ("session_id", "test_id", "devmode"),
    "/test": ("session_id", "test_id"),
    "/session": ("session_id",),
    "/session/status": ("after", "session_id", "include_tests", "test_ids", "detector"),
    "/session/latest": ("session_id",),
    "/session/zip": ("session_id", "test_id"),
}
PARTS = {
    "/session": ("configuration", "test_ids"),
    "/session/results": ("test_identification", "detection_file", "classification_file", "characterization_file"),
    "/session/resultsfeedback": ("test_identification", "detection_file", "classification_file"),
    "/session/feedback": ("session_id", "test_id", "feedback_type", "feedback_ids", "round_id"),
}
ERROR = {
    "type": "object",
    "required": ["reason", "message", "stack_trace"],
    "properties": {name: {"type": "string"} for name in ("reason", "message", "stack_trace")},
}


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    paths = {path: {method.lower(): _operation(path, method) for method in HANDLERS[path]} for path in HANDLERS}
    return {"openapi": "3.1.0", "info": {"title": "openfield ond", "version": "1"}, "paths": paths}


def _operation(path: str, method: str) -> dict[str, Any]:
    doc = (HANDLERS[path][method].__doc__ or "").strip()
    found: dict[str, Any] = {"summary": doc, "responses": _responses(path)}
    if method == "POST":
        parts = {name: {"type": "string"} for name in PARTS[path]}
        schema = {"type": "object", "properties": parts}
        found["requestBody"] = {"content": {"multipart/form-data": {"schema": schema}}}
    else:
        query = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in PARAMETERS[path]]
        found["parameters"] = query
    return found


def _responses(path: str) -> dict[str, Any]:
    error = {"description": "refused", "content": {"application/json": {"schema": ERROR}}}
    answers: dict[str, Any] = {"200": {"description": "done"}, "400": error, "500": error}
    return answers | ({"204": {"description": "past the end of the test"}} if path == "/session/dataset" else {})
