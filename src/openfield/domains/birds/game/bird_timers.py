"""Timers of launched birds: when each one is removed, and when a black one explodes."""

from __future__ import annotations

from openfield.domains.birds.game.bodies import Body
from openfield.domains.birds.game.physics import SECOND

REST_SPEED = 0.001
FUSE_SECONDS = 1
NEVER = 1 << 62


class BirdTimers:
    """The birds that have touched something or flown too long, and the step of each one's next check."""

    def __init__(self) -> None:
        self._out: list[tuple[Body, int]] = []
        self._fuse: tuple[Body, int] | None = None
        self._next = NEVER

    def __bool__(self) -> bool:
        return bool(self._out)

    def due(self, step: int) -> bool:
        """Return whether a bird has to be checked."""
        return step >= self._next

    def add(self, bird: Body, step: int) -> None:
        """Check a bird three seconds from now, and then every second."""
        self._out.append((bird, step + 3 * SECOND))
        self._plan()

    def light(self, bird: Body, step: int) -> None:
        """Start the fuse of a black bird."""
        self._fuse = (bird, step + FUSE_SECONDS * SECOND)
        self._plan()

    def take_burning(self, step: int) -> Body | None:
        """Return the black bird whose fuse has ended, if there is one."""
        if self._fuse is None or step < self._fuse[1]:
            return None
        bird, self._fuse = self._fuse[0], None
        self._plan()
        return None if bird.gone else bird

    def take_resting(self, step: int) -> list[Body]:
        """Return the birds that are due and at rest; those that still move are checked a second later."""
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
