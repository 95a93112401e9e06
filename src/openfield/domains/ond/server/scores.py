"""The numbers of tests as clients ask for them: of completed ones, and in devmode of those in process.

Beside `office.py`; what was said is in the ledger of a remote's world, what it is worth in `evaluation.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.listing import done_tests
from openfield.domains.ond.server.remote import find_ledger
from openfield.domains.ond.testset.answers import Ledger
from openfield.domains.ond.testset.evaluation import evaluate, evaluate_more, evaluate_reaction, evaluate_round
from openfield.serving.sessions import SessionDispatcher


class Grades:
    """Looks numbers up. `devmode`, which marks the session, shows those of tests in process."""

    def __init__(self, dispatcher: SessionDispatcher) -> None:
        self._dispatcher = dispatcher

    async def whole(self, session: str, test: str, devmode: bool) -> dict[str, Any]:
        """The numbers of a completed test."""
        ledger = await self._said(session, test, devmode)
        return await asyncio.to_thread(evaluate, ledger, self._is_condda(session))

    async def more(self, session: str, test: str, devmode: bool) -> dict[str, Any]:
        """What the protocol's local harness adds to the numbers of a test, round by round scores among it."""
        ledger = await self._said(session, test, devmode)
        return await asyncio.to_thread(evaluate_more, ledger, self._is_condda(session))

    async def reaction(self, session: str, baseline: str, test: str, devmode: bool) -> dict[str, Any]:
        """The numbers of a test against those of another session, that of a reaction baseline."""
        ours, theirs = [await self._said(one, test, devmode) for one in (session, baseline)]
        return await asyncio.to_thread(evaluate_reaction, ours, theirs)

    async def of_round(self, session: str, test: str, number: int, devmode: bool) -> dict[str, Any]:
        """Top-1 and top-3 accuracy of one round."""
        return evaluate_round(await self._said(session, test, devmode), number)

    def _is_condda(self, session: str) -> bool:
        return bool(self._dispatcher.groups[session].facts["protocol"] == "CONDDA")

    async def _said(self, session: str, test: str, devmode: bool) -> Ledger:
        """What was said of a test."""
        group = self._dispatcher.groups.get(session)
        if group is None or test not in group.trials or not (devmode or test in done_tests(group)):
            raise Refusal("TestInProcess", "The test is not completed.")
        if devmode and "devmode" not in group.facts:
            await self._dispatcher.note(group, "devmode", True)
        return await find_ledger(self._dispatcher, group, test)
