"""Check tokens, and go on after the journal could not be written: what all dispatchers with a journal share.

Stands under `dispatch` and `sessions`.
"""

from __future__ import annotations

import asyncio
import hmac
from abc import ABC, abstractmethod

from openfield.errors import AgentFault
from openfield.journal.writer import Journal


class RecordingDispatcher(ABC):
    """A dispatcher whose rollouts are recorded in a journal."""

    def __init__(self, journal: Journal, token: str | None) -> None:
        self._journal = journal
        self._token = token
        self._lock = asyncio.Lock()
        self._reopened = False

    def check(self, token: str | None) -> None:
        """Refuse a wrong token, if one is needed."""
        if self._token is not None and not hmac.compare_digest(self._token.encode(), (token or "").encode()):
            raise AgentFault("The token is wrong.")

    async def recover(self) -> None:
        """Go on from what is on disk after the journal has failed, as on a full disk; do nothing otherwise.

        What could not be written was never acknowledged, and is forgotten.

        Raises:
            JournalError: It still cannot be written.
        """
        if self._journal.failed:
            async with self._lock:
                await asyncio.to_thread(self._recover)

    @abstractmethod
    def _start_over(self) -> None:
        """Forget what is in memory, and read it again from the journal that `_reopen` opens."""

    def _recover(self) -> None:
        if self._journal.failed:  # otherwise another request was faster
            self._start_over()

    def _reopen(self) -> None:
        self._journal.close()
        self._journal, self._reopened = Journal(self._journal.path), True

    def _close_reopened(self) -> None:
        """Close the journal if it was opened here. The one that was given is closed by its owner."""
        if self._reopened:
            self._journal.close()
