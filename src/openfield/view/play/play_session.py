"""A person plays a trial: turns are shown, acts are taken, and the belief is asked for.

The session talks to the page over a channel; what an act means and what a turn shows is the domain's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Protocol

from openfield.agents.key_page import KeyPage
from openfield.agents.play_page import FilmsPlay
from openfield.agents.turn_writer import BELIEF_QUESTION, asks_belief
from openfield.core import Ask, Belief, Reply, Turn
from openfield.errors import AgentProtocol
from openfield.view.play.browser_channel import encode_picture, write_content
from openfield.view.play.messages import Act, Believe, Go, Hold, Message, Preview, TurnSeen
from openfield.view.play.open_trial import OpenTrial

MAX_AHEAD = 8
"""Pictures that may be on their way where time runs. A page that is hidden or slow lets the world stand still."""
BATCH = 6
"""Pictures of a film that are painted at a time."""
Work = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Does something that takes time in a thread."""


class PlayChannel(Protocol):
    """What a session needs of the connection to a browser."""

    async def show(self, what: str, **content: Any) -> None:
        """Send the page its next content."""

    async def send_text(self, text: str) -> None:
        """Send the page its next content, as text that `write_content` made."""

    async def send_picture(self, content: bytes) -> None:
        """Send a picture; the page shows it after those before."""

    async def receive(self) -> Message:
        """Wait for a message, or raise `Gone`."""
        ...

    def poll(self) -> Message | None:
        """Return a message that has come, or None."""
        ...

    @property
    def waiting(self) -> bool:
        """Whether a message has come."""
        ...

    async def refuse(self, reason: str) -> None:
        """Say what is wrong with a message."""


class PlaySession:
    """A trial that is played over a connection."""

    def __init__(self, trial: OpenTrial, channel: PlayChannel, work: Work) -> None:
        self._trial, self._channel, self._work = trial, channel, work
        self._page = trial.page

    async def play(self, place: int, count: int, practice: bool = False) -> None:
        """Play until the trial is over.

        Args:
            place: The number of the trial, from 0 on.
            count: How many trials the person plays.
            practice: Whether nothing is recorded.
        """
        film = self._page.film_milliseconds if isinstance(self._page, FilmsPlay) else None
        await self._channel.show(
            "trial",
            kind=self._page.kind,
            page=self._page.describe(),
            task=self._trial.spec.task,
            question=BELIEF_QUESTION,
            film=film,
            place=place,
            count=count,
            practice=practice,
        )
        try:
            while not self._trial.over:
                await self._play_turn()
        finally:
            if self._trial.committed is not None:  # a shot that flies cannot be taken back by closing the page
                await self._work(partial(self._trial.act, self._trial.committed))

    async def _play_turn(self) -> None:
        """Show a turn, and take messages until it is answered."""
        turn, turns = self._trial.turn, self._trial.rollout.turns
        asks = self._asks(turn)
        if turn.ask is Ask.READY and getattr(self._page, "is_ready", lambda turn: False)(turn):
            await self._answer(Reply(True))
            return
        await self._show(turn, asks)
        while self._trial.rollout.turns == turns and not self._trial.over:
            message = await self._channel.receive()
            try:
                await self._take(message, turn, asks)
            except AgentProtocol as error:
                await self._channel.refuse(str(error))

    def _asks(self, turn: Turn) -> bool:
        """Return whether the person is asked for a belief now. A page may ask with an act, not after it."""
        own: Callable[[Turn], bool] | None = getattr(self._page, "asks", None)
        return turn.ask is Ask.BELIEF or (asks_belief(turn, self._trial.spec.ask) if own is None else own(turn))

    async def _show(self, turn: Turn, asks: bool) -> None:
        picture, text = await self._work(lambda: self._render(turn, asks))
        if picture is not None:
            await self._channel.send_picture(picture)
        await self._channel.send_text(text)

    def _render(self, turn: Turn, asks: bool) -> tuple[bytes | None, str]:
        shown = self._trial.show()
        picture = shown.pop("picture", None)
        content = {
            "show": "turn",
            "turn": self._trial.rollout.turns,
            "ask": turn.ask.value,
            "phase": turn.phase,
            "first": turn.first,
            "last": turn.last,
            "reward": turn.reward,
            "red_light": turn.red_light,
            "asks": asks,
            **shown,
        }
        return None if picture is None else encode_picture(picture), write_content(content)

    async def _take(self, message: Message, turn: Turn, asks: bool) -> None:
        """Do what a message means while a turn is shown."""
        match message:
            case TurnSeen():
                self._trial.look()
            case Believe(novel) if turn.ask is Ask.ACT:
                self._trial.belief = novel
                await self._channel.show("noted", novel=novel)
            case Believe(novel) if turn.ask in (Ask.BELIEF, Ask.NONE):
                await self._answer(Reply(None, Belief(novel)))
            case Go() if turn.ask is Ask.READY or (turn.ask is Ask.NONE and not asks):
                await self._answer(Reply(True) if turn.ask is Ask.READY else Reply())
            case Go() if isinstance(self._page, KeyPage) and self._page.milliseconds and turn.ask is Ask.ACT:
                await PlayClock(self._trial, self._page, self._channel, self._work).run()
                if self._trial.turn is turn:  # the person paused at once
                    await self._show(turn, asks)
            case Act() | Preview() if turn.ask is Ask.ACT and asks and self._trial.belief is None:
                raise AgentProtocol("Answer the question first.")
            case Act(act, seen) if turn.ask is Ask.ACT:
                await self._act(act, seen)
            case Preview(act) if turn.ask is Ask.ACT and isinstance(self._page, FilmsPlay):
                await self._preview(act)
            case _:
                raise AgentProtocol("This cannot be done now.")

    async def _answer(self, reply: Reply) -> None:
        await self._work(partial(self._trial.answer, reply))

    async def _act(self, act: Any, seen: int) -> None:
        trial = self._trial
        if trial.committed is None:
            await self._work(partial(trial.act, act))
        else:
            kept = self._page.join(trial.committed, act)  # type: ignore[attr-defined]
            await self._work(partial(trial.act, kept, time.monotonic_ns() - self._decided))
        if isinstance(self._page, FilmsPlay):
            await self._send_film(self._page.pictures(seen))

    async def _preview(self, act: Any) -> None:
        """Show what an act leads to. From now on it can be added to, but not taken back."""
        if self._trial.committed is not None:
            raise AgentProtocol("The shot is under way.")
        page = self._page
        if not isinstance(page, FilmsPlay):
            return
        pictures = await self._work(partial(page.preview, act))
        self._trial.committed, self._decided = act, time.monotonic_ns()
        await self._send_film(pictures)
        await self._channel.show("landed")

    async def _send_film(self, pictures: Iterable[Any]) -> None:
        """Paint and send pictures, some at a time, until the person does something."""
        waiting: Iterator[Any] = iter(pictures)
        while batch := await self._work(lambda: [encode_picture(each) for each in islice(waiting, BATCH)]):
            for content in batch:
                await self._channel.send_picture(content)
            if self._channel.waiting:
                return


class PlayClock:
    """Lets time run in a world that does not wait for its player: a turn every few milliseconds."""

    def __init__(self, trial: OpenTrial, page: KeyPage, channel: PlayChannel, work: Work) -> None:
        self._trial, self._page, self._channel, self._work = trial, page, channel, work
        self._held: int | None = None
        self._tapped: int | None = None
        """The key that was pressed last and has not acted yet, even if it was let go before the next turn."""
        self._rests = 0
        self._ahead = 0

    async def run(self) -> None:
        """Play until the episode ends or the person pauses."""
        loop, period = asyncio.get_running_loop(), (self._page.milliseconds or 0.0) / 1000
        due = loop.time()
        paused = False
        while self._trial.turn.ask is Ask.ACT and not self._trial.over and not paused:
            while (message := self._channel.poll()) is not None:
                paused |= await self._take_live(message)
            if self._ahead >= MAX_AHEAD:
                paused |= await self._take_live(await self._channel.receive())
                due = loop.time()
                continue
            picture, text = await self._work(self._tick)
            self._ahead += 1
            if picture is not None:
                await self._channel.send_picture(picture)
            await self._channel.send_text(text)
            due = max(due + period, loop.time() - period)
            await asyncio.sleep(max(due - loop.time(), 0))

    async def _take_live(self, message: Message) -> bool:
        """Take a message while time runs, and return whether the person wants a pause."""
        match message:
            case Hold(act) if act is None or 0 <= act < len(self._page.actions):
                if act is not None and act != self._held:
                    self._rests, self._tapped = 0, act
                self._held = act
            case TurnSeen():
                self._ahead = max(self._ahead - 1, 0)
            case Believe(novel):
                self._trial.belief = novel
            case Go():
                return True
            case _:
                await self._channel.refuse("This cannot be done while the world goes on.")
        return False

    def _tick(self) -> tuple[bytes | None, str]:
        """Let one turn pass, with the action of the key that is held."""
        key = self._held if self._tapped is None else self._tapped
        held = None if key is None or self._rests else self._page.actions[key]
        self._tapped = None
        if held is not None:
            self._rests = held.ticks - 1
            self._trial.answer(Reply(held.action))
        else:
            self._rests = max(self._rests - 1, 0)
            self._trial.answer(Reply(self._page.idle))
        shown = self._trial.show()
        picture = shown.pop("picture", None)
        return None if picture is None else encode_picture(picture), write_content({"show": "tick", **shown})
