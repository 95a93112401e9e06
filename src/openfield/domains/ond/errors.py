"""Refusals of the protocol: a status, a reason that existing clients know, and a message for their reader.

Raised wherever a request is checked; `app.py` turns a refusal into the protocol's error object.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from openfield.errors import OpenfieldError


class Refusal(OpenfieldError):
    """A request that the protocol refuses. Clients know the statuses 400 (their fault) and 500 (ours) and no others."""

    def __init__(self, reason: str, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        """Make a refusal: `reason` is the word that clients compare, `message` the sentence for a person."""
        super().__init__(message)
        self.reason, self.status, self.headers = reason, status, headers

    def encode(self) -> bytes:
        """Return the protocol's error object; clients insist on all three keys."""
        return msgspec.json.encode({"reason": self.reason, "message": str(self), "stack_trace": ""})
