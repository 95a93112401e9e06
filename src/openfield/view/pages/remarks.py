"""Take the tags and the note that a reader writes about a run; they are kept beside its file, which stays as it is."""

from __future__ import annotations

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from openfield.errors import InvalidInput, OpenfieldError
from openfield.provenance.remarks import MAX_BYTES, EditedRemarks, write_remarks
from openfield.view.page import find_status, library_of


async def put_remarks(request: Request) -> JSONResponse:
    """Keep what was sent, `{"tags": [...], "note": "..."}`, and answer with it."""
    try:
        body = await _read_body(request)
        return JSONResponse(await run_in_threadpool(_keep, request, body))
    except OpenfieldError as error:
        return JSONResponse({"error": str(error)}, find_status(error))


def _keep(request: Request, body: bytes) -> object:
    library = library_of(request)
    if not library.editable:
        raise InvalidInput("Tags and notes are changed only where the viewer lets in this machine alone.")
    path = library.entry(request.path_params["run"]).path
    try:
        remarks = msgspec.json.decode(body, type=EditedRemarks)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"These are no tags and notes: {error}") from None
    write_remarks(path, remarks)
    return msgspec.to_builtins(remarks)


async def _read_body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise InvalidInput(f"Tags and notes have at most {MAX_BYTES:,} bytes.")
    return body


ROUTES = [Route("/runs/{run}/remarks", put_remarks, methods=["PUT"])]
