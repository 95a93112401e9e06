"""The connection to a browser: it sends what is shown, and reads messages that may be anything."""

from __future__ import annotations

import asyncio
import base64
import io
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from openfield.errors import AgentProtocol
from openfield.lazy import import_extra
from openfield.view.play.messages import Message, read_message

MAX_FAULTS = 20
"""Wrong messages of a connection until it is closed. A page of ours sends none."""
MAX_WAITING = 64
"""Messages that may wait; then the browser must."""
REFUSED = 1008
SMALL = 20_000
"""Pixels up to which a picture is sent without loss: pictures to be labelled."""
FLAT_COLOURS = 96
"""Colours up to which a larger one is sent so, too: edges of flat areas, as in a maze, have halos in a JPEG. Views
of Doom have more colours. They are sent twenty times a second, and a PNG of one takes twenty times as long."""
MAX_SIDE = 1_200
"""Pixels of a side; larger pictures are sent smaller."""
QUALITY = 82


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
        """Send the page its next content."""
        await self._send(text=write_content({"show": what, **content}))

    async def send_text(self, text: str) -> None:
        """Send the page its next content, as text that `write_content` made."""
        await self._send(text=text)

    async def send_picture(self, content: bytes) -> None:
        """Send a picture; the page shows it after those before."""
        await self._send(content=content)

    async def receive(self) -> Message:
        """Wait for a message.

        Raises:
            Gone: The browser is gone.
        """
        message = await self._inbox.get()
        if message is None:
            raise Gone
        return message

    def poll(self) -> Message | None:
        """Return a message that has come, or None.

        Raises:
            Gone: The browser is gone.
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


def encode_picture(pixels: Any) -> bytes:
    """Return an array of (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) as a PNG if it is small or flat, else as a JPEG."""
    image = import_extra("PIL.Image", "view", "Play in the browser").fromarray(stretch_to_bytes(pixels))
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    target = io.BytesIO()
    if image.width * image.height <= SMALL or image.getcolors(FLAT_COLOURS) is not None:
        image.save(target, "PNG", compress_level=1)
    else:
        image.convert("RGB").save(target, "JPEG", quality=QUALITY)
    return target.getvalue()


def stretch_to_bytes(pixels: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return pixels as bytes. Other numbers are stretched from the lowest to the highest."""
    array = np.asarray(pixels)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    real = np.nan_to_num(array.astype(float))
    low, high = float(real.min(initial=0.0)), float(real.max(initial=1.0))
    return np.ascontiguousarray((real - low) / ((high - low) or 1.0) * 255, dtype=np.uint8)


def write_data_address(pixels: Any) -> str:
    """Return a picture as an address that holds it."""
    content = encode_picture(pixels)
    kind = "png" if content.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
