"""The server of the protocol: its REST interface over HTTP, and what stands behind each request.

Start with `routes.py`, the table of requests, and `session_service.py`, which does what they ask for. `app.py` makes
them a Starlette application, `http.py` serves it with uvicorn, and `wire.py` is what the domain offers. `openapi.py`
describes the requests. `archive.py` packs a session as a zip file, and `import_results.py` reads such files back.
"""
