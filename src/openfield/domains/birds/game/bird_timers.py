"""Birds that are out: when each is taken away, and when a black one explodes.

Stands beside game, which asks at every tick.
"""

from __future__ import annotations

from openfield.domains.birds.game.bodies import Body
from openfield.domains.birds.game.physics import SECOND

REST_SPEED = 0.001
FUSE_SECONDS = 1
NEVER = 1 << 62


class BirdTimers:
    """Birds that have touched something or flown too long."""

    def __init__(self) -> None:
        self._out: list[tuple[Body, int]] = []  # each with the step of its next check
        self._fuse: tuple[Body, int] | None = None
        self._next = NEVER  # when the first of them is to be looked at

    def __bool__(self) -> bool:
        return bool(self._out)

    def due(self, step: int) -> bool:
        """Whether one of them has to be looked at."""
        return step >= self._next

    def add(self, bird: Body, step: int) -> None:
        """Takes note of a bird; it is looked at three seconds later, and then each second."""
        self._out.append((bird, step + 3 * SECOND))
        self._plan()

    def light(self, bird: Body, step: int) -> None:
        """Lights the fuse of a black bird."""
        self._fuse = (bird, step + FUSE_SECONDS * SECOND)
        self._plan()

    def take_burning(self, step: int) -> Body | None:
        """The black bird whose fuse has burnt down."""
        if self._fuse is None or step < self._fuse[1]:
            return None
        bird, self._fuse = self._fuse[0], None
        self._plan()
        return None if bird.gone else bird

    def take_resting(self, step: int) -> list[Body]:
        """The birds that are due and came to rest; the others that are due wait another second."""
        due = [bird for bird, check in self._out if step >= check and not bird.gone]
        resting = [bird for bird in due if bird.speed < REST_SPEED]
        self._out = [
            (bird, check + SECOND if bird in due else check)
            for bird, check in self._out
            if not bird.gone and bird not in resting
        ]
        self._plan()
        return resting

    def _plan(self) -> None:
        fuse = NEVER if self._fuse is None else self._fuse[1]
        self._next = min((check for _, check in self._out), default=NEVER)
        self._next = min(self._next, fuse)
