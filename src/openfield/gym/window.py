"""A window that shows pictures one after the other, for `render_mode="human"` of the Gymnasium environments.

It needs pygame (extra `window`), which is imported when the first picture is shown.
"""

from __future__ import annotations

import os
from typing import Any

from openfield.errors import InvalidInput
from openfield.lazy import import_extra


class Window:
    """A window on the screen."""

    def __init__(self, title: str, fps: float) -> None:
        """Prepare a window; it opens with its first picture and shows at most `fps` pictures a second."""
        self._title, self._fps = title, fps
        self._screen: Any = None
        self._closed = False

    def show(self, picture: Any) -> None:
        """Show a picture: an array of height, width and three colours. Do nothing once the user closed the window."""
        if self._closed:
            return
        game = _import_pygame()
        if self._screen is None:
            self._open(game, (picture.shape[1], picture.shape[0]))
        surface = game.image.frombuffer(picture.tobytes(), (picture.shape[1], picture.shape[0]), "RGB")
        self._screen.blit(surface, (0, 0))
        game.display.flip()
        self._clock.tick(self._fps)
        if any(event.type == game.QUIT for event in game.event.get()):
            self.close()

    def close(self) -> None:
        """Close the window."""
        self._closed = True
        if self._screen is not None:
            _import_pygame().display.quit()
        self._screen = None

    def _open(self, game: Any, size: tuple[int, int]) -> None:
        try:
            game.display.init()
            self._screen = game.display.set_mode(size)
        except game.error as error:
            raise InvalidInput(f'No window can be opened ({error}). Use render_mode="rgb_array".') from None
        game.display.set_caption(self._title)
        self._clock = game.time.Clock()


def _import_pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # otherwise the import prints a line
    return import_extra("pygame", "window", 'render_mode="human"')
