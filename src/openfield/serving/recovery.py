"""What every dispatcher with a journal does: lets in who shows the token, and goes on after there was no room to write.

Stands under serve and groups, whose dispatchers hand out remotes.
"""

from __future__ import annotations

import asyncio
import hmac
from abc import ABC, abstractmethod

from openfield.errors import AgentFault
from openfield.journal.writer import Journal


class RecordingDispatcher(ABC):
    """A dispatcher whose remotes are recorded in a journal."""

    def __init__(self, journal: Journal, token: str | None) -> None:
        self._journal = journal
        self._token = token
        self._lock = asyncio.Lock()
        self._reopened = False

    def check(self, token: str | None) -> None:
        """Lets in only who shows the token, where there is one."""
        if self._token is not None and not hmac.compare_digest(self._token.encode(), (token or "").encode()):
            raise AgentFault("The token is wrong.")

    async def recover(self) -> None:
        """Goes on from what is on disk after the journal has failed, as on a full disk; does nothing otherwise.

        What could not be written was acknowledged to nobody, and is forgotten.

        Raises:
            JournalError: There is still no writing.
        """
        if self._journal.failed:
            async with self._lock:
                await asyncio.to_thread(self._recover)

    @abstractmethod
    def _start_over(self) -> None:
        """Forgets what is in memory, and reads it again from the journal, reopened by `_reopen`."""

    def _recover(self) -> None:
        if self._journal.failed:  # otherwise another request was faster
            self._start_over()

    def _reopen(self) -> None:
        self._journal.close()
        self._journal, self._reopened = Journal(self._journal.path), True

    def _close_reopened(self) -> None:
        """Closes the journal if it was opened here; the one we were given is closed by who gave it."""
        if self._reopened:
            self._journal.close()
