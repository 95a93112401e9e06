"""A trial that a person plays: its rollout in a world that draws, and the page on which it is played.

Between the domain, which says what is shown and what an act means, and the session, which talks to a browser. It lives
in the process of a person (`play_worker`). Its methods may be called from any thread, one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from typing import Any

import msgspec

from openfield.agents.key_page import make_page
from openfield.agents.play_page import PlayPage
from openfield.agents.turn_writer import find_writer
from openfield.capabilities import HasFilm, HasPlayPage, make_film
from openfield.cell import Cell
from openfield.core import Belief, Reply, Turn, World
from openfield.domain import Domain, make_world, spec_of
from openfield.errors import InvalidInput
from openfield.journal.recorder import Recorder
from openfield.journal.replay import recall, resume_rollout
from openfield.limit_guard import NEVER
from openfield.provenance.rules import own_rule
from openfield.record import RawStep
from openfield.trial import Trial


class OpenTrial:
    """A trial under way. What was recorded of it before is replayed first."""

    def __init__(
        self, domain: Domain[Any], cell: Cell, recorder: Recorder | None, past: Iterable[RawStep] = ()
    ) -> None:
        """Open a trial. A person may think as long as they like: the limit of a reply does not hold.

        Args:
            domain: The domain of the trial.
            cell: Who plays which trial.
            recorder: Where turns are recorded; None records nothing.
            past: What was recorded before.
        """
        self.cell = cell
        self.spec = spec_of(domain, cell.trial)
        self.page = find_page(domain, cell.trial)
        self.belief: float | None = None
        """What the person believes and has not said with a reply yet."""
        self.committed: Any = None
        """An act that was previewed: it can no longer be taken back."""
        self._lock = threading.RLock()
        world = _open_world(domain, cell)
        if recorder is not None:
            recorder.rule = own_rule(domain, cell.trial)
        limits = msgspec.structs.replace(cell.trial.limits, reply_seconds=None)
        remember = getattr(self.page, "remember", lambda turn, reply: None)
        try:
            self.rollout = resume_rollout(world, past, limits, recorder, known=0)
            for turn, reply in recall(self.rollout):
                remember(turn, reply)
        except BaseException:
            world.close()
            raise

    @property
    def turn(self) -> Turn:
        """What the person may see now."""
        return self.rollout.turn

    @property
    def over(self) -> bool:
        """Whether the trial has ended."""
        return self.rollout.over

    def show(self) -> dict[str, Any]:
        """Return what the page shows of the turn."""
        with self._lock:
            return self.page.show(self.turn, self.rollout.world)

    def look(self) -> None:
        """Begin to measure how long the person thinks: the page has shown the turn now."""
        with self._lock:
            self.rollout.guard.excuse(NEVER)

    def act(self, act: Any, away: int = 0) -> None:
        """Take an act of the person, with what they believe.

        Args:
            act: What the page sent.
            away: Nanoseconds since the person decided, while the page showed a film.

        Raises:
            AgentProtocol: It is not an act here. Nothing has changed then.
        """
        with self._lock:
            self.committed = None
            self.rollout.guard.excuse(away)
            self._take(self.page.act(act, self.turn))

    def answer(self, reply: Reply) -> None:
        """Take a reply that is not an act: to the end of an episode, to a question, or to a beginning."""
        with self._lock:
            self._take(_single(reply))

    def finish(self, outcome: str = "", note: str = "") -> None:
        """Record how the trial ended, and close the world."""
        with self._lock:
            self.rollout.close(outcome or self.rollout.outcome, note)

    def _take(self, replies: Generator[Reply, Turn, None]) -> None:
        """Give replies to the rollout, and return when they are on disk."""
        reply = next(replies, None)
        while reply is not None:
            turn = self.rollout.reply(self._with_belief(reply))
            if self.over:
                break
            try:
                reply = replies.send(turn)
            except StopIteration:
                break
        written = self.rollout.commit()
        if written is not None:
            written.result()

    def _with_belief(self, reply: Reply) -> Reply:
        if self.belief is None or reply.belief is not None:
            return reply
        novel, self.belief = self.belief, None
        return Reply(reply.action, Belief(novel))


def find_page(domain: Domain[Any], trial: Trial) -> PlayPage:
    """Return how a person plays a trial: in the way of the domain, or with keys or a line."""
    if isinstance(domain, HasPlayPage):
        return domain.play_page(trial)
    spec = spec_of(domain, trial)
    return make_page(spec, find_writer(domain, spec))


def _open_world(domain: Domain[Any], cell: Cell) -> World:
    """Make a world that draws, where there is one. It shows the same turns as any other."""
    if isinstance(domain, HasFilm):
        try:
            return make_film(domain, cell.trial).world
        except InvalidInput:  # this environment of the domain does not draw
            pass
    return make_world(domain, cell.trial)


def _single(reply: Reply) -> Generator[Reply, Turn, None]:
    yield reply
