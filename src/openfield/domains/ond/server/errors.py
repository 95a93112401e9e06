"""What the protocol refuses: a status, a reason existing clients know, a message for their reader.

Raised by the ledger and the wire; the shell turns it into the protocol's error object.
"""

from __future__ import annotations

from openfield.errors import OpenfieldError


class Refusal(OpenfieldError):
    """A request the protocol refuses. Clients know the statuses 400 (their fault) and 500 (ours) and no others."""

    def __init__(self, reason: str, message: str, status: int = 400, allow: str = "") -> None:
        """A refusal.

        Args:
            reason: What clients go by.
            message: For their reader.
            status: Of the answer.
            allow: The methods an address answers, where another was tried.
        """
        super().__init__(message)
        self.allow = allow
        self.reason = reason
        self.status = status
