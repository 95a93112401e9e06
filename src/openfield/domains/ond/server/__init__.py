"""The server of the protocol: its REST interface over HTTP, and what stands behind each request.

Start with `routes.py`, the table of requests and their description, and `session_service.py`, which carries them out
for. `app.py` reads them from HTTP as a Starlette application, `http.py` serves it with uvicorn, and `wire.py` is what
the domain offers. `archive.py` packs a session as a zip file, and `import_results.py` reads such files back.
"""
