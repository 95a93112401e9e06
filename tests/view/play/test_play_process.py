"""The process of a person as the server sees it."""

from __future__ import annotations

import asyncio

import pytest

from openfield.view.play import worker_messages as wire
from openfield.view.play.browser_channel import Gone
from openfield.view.play.play_process import PlayProcess


def test_a_closed_tab_is_told_to_the_process_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says once that it has left; to wait for that a second time would end it."""

    class Closed:
        async def receive(self) -> None:
            raise Gone

    async def leave(process: PlayProcess) -> None:
        raise AssertionError

    async def play() -> None:
        process._answers = asyncio.Queue()
        process._answers.put_nowait(wire.Left())
        await process.play(Closed(), wire.PlayOrder(place=0, count=1, practice=False))  # type: ignore[arg-type]

    monkeypatch.setattr(PlayProcess, "_leave", leave)
    monkeypatch.setattr(PlayProcess, "_send", lambda *_: None)
    process = PlayProcess.__new__(PlayProcess)
    with pytest.raises(Gone):
        asyncio.run(play())
