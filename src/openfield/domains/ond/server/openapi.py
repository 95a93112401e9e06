"""The OpenAPI description of the server, made from the table of requests and the signatures of their handlers.

Served at `/openapi.json`, and as a page at `/docs`. Tests hold the server against it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from openfield.domains.ond.server.parameters import Operation, Text
from openfield.domains.ond.server.routes import OPERATIONS
from openfield.domains.ond.testset.results import TYPES

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
