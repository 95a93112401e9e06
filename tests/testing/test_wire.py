"""The checks of a wire pass one that changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import openfield as of
from openfield.serving.jsonlines import JsonLinesWire
from openfield.testing import check_wire
from support import bad_agents
from support.walks import WALKS


class ForgetfulWire(JsonLinesWire):
    """Loses beliefs on the way."""

    async def serve(self, dispatcher: Any, *rest: Any) -> None:
        await super().serve(ForgetfulDispatcher(dispatcher), *rest)


class ForgetfulDispatcher:
    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    async def join(self, *asked: Any) -> Any:
        remote = await self.dispatcher.join(*asked)
        take = remote.take
        remote.take = lambda answer, durable=True: take(of.Reply(answer.action), durable)
        return remote


def test_a_wire_that_loses_something_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WALKS, "wire", ForgetfulWire, raising=False)
    assert check_wire(WALKS, agent=bad_agents.Walker).failed == ["equal_record"]


def test_a_peer_that_gets_nowhere_is_caught() -> None:
    async def leave(host: str, port: int, replies: Sequence[of.Reply]) -> None:
        pass

    assert check_wire(WALKS, peer=leave).failed == ["plays"]


def test_a_foreign_wire_without_a_peer_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WALKS, "wire", lambda: object(), raising=False)
    report = check_wire(WALKS)
    assert [finding.judged for finding in report.findings] == [False, False]
    assert report.passed
