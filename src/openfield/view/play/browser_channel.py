"""The connection to a browser: it sends what is shown, and reads messages that may be anything."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from openfield.errors import AgentProtocol
from openfield.view.play.messages import Message, read_message
from openfield.view.play.pictures import write_data_address

MAX_FAULTS = 20
"""Wrong messages of a connection until it is closed. A page of ours sends none."""
MAX_WAITING = 64
"""Messages that may wait; then the browser must."""
REFUSED = 1008


class Gone(Exception):
    """The browser has closed the connection."""


class BrowserChannel:
    """A connection that was accepted."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._inbox: asyncio.Queue[Message | None] = asyncio.Queue(MAX_WAITING)
        self._faults = 0
        self._reader = asyncio.ensure_future(self._read())

    async def show(self, what: str, **content: Any) -> None:
        """Tell the page what to show."""
        await self._send(text=write_content({"show": what, **content}))

    async def send_text(self, text: str) -> None:
        """Tell the page what to show, as text that `write_content` made."""
        await self._send(text=text)

    async def send_picture(self, content: bytes) -> None:
        """Send a picture; the page shows it after those before."""
        await self._send(content=content)

    async def receive(self) -> Message:
        """Wait for a message.

        Raises:
            Gone: There is none any more.
        """
        message = await self._inbox.get()
        if message is None:
            raise Gone
        return message

    def poll(self) -> Message | None:
        """Return a message that has come; None if there is none.

        Raises:
            Gone: There is none any more.
        """
        try:
            message = self._inbox.get_nowait()
        except asyncio.QueueEmpty:
            return None
        if message is None:
            raise Gone
        return message

    @property
    def waiting(self) -> bool:
        """Whether a message has come."""
        return not self._inbox.empty()

    async def refuse(self, reason: str) -> None:
        """Say what is wrong with a message, and close the connection if that happens again and again."""
        self._faults += 1
        await self.show("refused", text=reason)
        if self._faults >= MAX_FAULTS:
            await self._close(REFUSED)
            raise Gone

    async def close(self) -> None:
        """Close the connection."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._close(1000)

    async def _send(self, text: str | None = None, content: bytes | None = None) -> None:
        try:
            if text is not None:
                await self._socket.send_text(text)
            if content is not None:
                await self._socket.send_bytes(content)
        except (RuntimeError, WebSocketDisconnect, OSError):
            raise Gone from None

    async def _close(self, code: int) -> None:
        if self._socket.application_state is not WebSocketState.DISCONNECTED:
            with suppress(RuntimeError, WebSocketDisconnect, OSError):
                await self._socket.close(code)

    async def _read(self) -> None:
        """Read messages until the connection ends; wrong ones are refused here."""
        try:
            while True:
                found = await self._socket.receive()
                if found["type"] != "websocket.receive":
                    break
                try:
                    await self._inbox.put(read_message(found.get("text") or found.get("bytes") or b""))
                except AgentProtocol as error:
                    await self.refuse(str(error))
        except (Gone, RuntimeError, OSError):
            pass
        finally:
            with suppress(asyncio.QueueFull):
                self._inbox.put_nowait(None)
            if self._inbox.full():  # then the end has no room: the next to be read is it
                self._inbox.get_nowait()
                self._inbox.put_nowait(None)


def write_content(content: Any) -> str:
    """Return what is shown as JSON; arrays of pixels become pictures."""
    return msgspec.json.encode(content, enc_hook=_write).decode()


def _write(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim >= 2:
        return write_data_address(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)
