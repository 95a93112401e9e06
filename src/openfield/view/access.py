"""Who may use the viewer: a guard before every request.

The address that is printed carries a token. The first browser that shows it gets a cookie instead, which no script can
read and which is sent to this server alone, and is sent on to the address without the token. The guard also checks that
a request is for this server and from its own pages (a foreign page in the same browser could try), refuses to change
anything but the remarks about a run and where people play, and gives every answer a strict content security policy.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openfield.report.render import render
from openfield.serving.listen import is_own_host, is_own_origin

SESSION_SECONDS = 24 * 3600
READING = ("GET", "HEAD")
WRITABLE = ("/play/",)
"""Where requests may change something: people play there."""
EDITED = re.compile(r"/runs/[^/]+/remarks")
"""What may be put: the tags and the note of a run. No form of a foreign page can send such a request."""
OPEN = ("/static/",)
"""What needs no session: files that are the same for everybody."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Access:
    """The token of the address, and the sessions that were begun with it."""

    def __init__(self, token: str | None = None, names: Iterable[str] = (), key: bytes | None = None) -> None:
        """Take the user's own token, or draw one that can be used once.

        Args:
            token: A secret that may be used again and again: the user gives it to others.
            names: What this server is called, beside `localhost` and addresses.
            key: What cookies are signed with, so that they outlive the server; drawn if empty.
        """
        self._fixed = token
        self._fresh: set[str] = set()
        self._used: set[str] = set()
        self._key = key or secrets.token_bytes(32)
        self.names = {"localhost", *(name.lower() for name in names)}
        self.renew: Callable[[str], None] | None = None
        """Called with a new token when a used one is shown: the user has opened the address in a second browser."""

    def draw_token(self) -> str:
        """Return a token for an address."""
        if self._fixed is not None:
            return self._fixed
        self._fresh.add(token := secrets.token_urlsafe(16))
        return token

    def spend(self, token: str) -> bool:
        """Return whether a token lets its bearer in; one that was drawn does so once."""
        if self._fixed is not None:
            return hmac.compare_digest(token.encode(), self._fixed.encode())
        if token in self._fresh:
            self._fresh.remove(token)
            self._used.add(token)
            return True
        if token in self._used and self.renew is not None and not self._fresh:
            self.renew(self.draw_token())
        return False

    def begin_session(self, now: float) -> str:
        """Return the value of a cookie."""
        until = str(int(now) + SESSION_SECONDS)
        return f"{until}.{self._sign(until)}"

    def is_session(self, cookie: str, now: float) -> bool:
        """Return whether a cookie is one of ours and not too old."""
        until, _, signature = cookie.partition(".")
        known = hmac.compare_digest(signature.encode(), self._sign(until).encode())
        return known and until.isdecimal() and now < int(until)

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, f"session of the viewer until {text}".encode(), hashlib.sha256).hexdigest()


class AccessGuard:
    """Checks every request before its address is looked up."""

    def __init__(self, app: ASGIApp, access: Access, open_paths: Iterable[str] = ()) -> None:
        """Take the application; `open_paths` are prefixes of addresses that have checks of their own."""
        self._app, self._access = app, access
        self._open = (*OPEN, *open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._check(scope)
        if refusal is None:
            await self._app(scope, receive, _adding_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, _adding_headers(send))

    def _check(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further; None if it does."""
        headers, path = Headers(scope=scope), scope["path"]
        host, origin = headers.get("host", ""), headers.get("origin")
        if len(headers.getlist("host")) != 1 or not is_own_host(host, self._access.names):
            return make_refusal_page("This server has another name", "Use the address that openfield printed.", 421)
        if not is_own_origin(origin, host) or (origin is None and scope["type"] == "websocket"):
            return make_refusal_page("Refused", "Pages of other sites may not use this server.", 403)
        method = scope.get("method", "GET")
        edits = method == "PUT" and EDITED.fullmatch(path) is not None
        if method not in READING and not path.startswith(WRITABLE) and not edits:
            return make_refusal_page("Refused", "Nothing can be changed here.", 405)
        if path.startswith(self._open):
            return None
        return self._check_session(scope, headers)

    def _check_session(self, scope: Scope, headers: Headers) -> Response | None:
        name, now = name_cookie(scope), time.time()
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for key, value in query if key == "token"), None)
        known = self._access.is_session(_read_cookie(headers.get("cookie", ""), name), now)
        if token is None:
            return None if known else make_refusal_page("Not yet let in", ENTER, 403)
        if not known and not self._access.spend(token):
            return make_refusal_page("This address was used before, or is not the one", ENTER, 403)
        rest = urlencode([(key, value) for key, value in query if key != "token"])
        response = RedirectResponse(f"/{scope['path'].lstrip('/')}{f'?{rest}' if rest else ''}", 303)
        if not known:
            value = self._access.begin_session(now)
            response.set_cookie(name, value, SESSION_SECONDS, httponly=True, samesite="lax")
        return response


ENTER = "Open the address that openfield prints: it carries a token that works once. The terminal shows a fresh one."


def name_cookie(scope: Scope) -> str:
    """Return the name of the cookie: servers on other ports of the same machine share all cookies."""
    server = scope.get("server")
    return f"openfield-{server[1] if server else 0}"


def make_refusal_page(title: str, reason: str, status: int) -> Response:
    """Return a refusal as a small page."""
    return HTMLResponse(render("refused.html", {"title": title, "reason": reason}, "/"), status)


def _read_cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _adding_headers(send: Send) -> Send:
    async def pass_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return pass_on
