"""`view.console` and `view.win_console` of the original: names that user code imports. They print the conversation."""

from __future__ import annotations

from typing import Any

from openfield.domains.commai.agents.human import LineView
from openfield.domains.commai.agents.listener import Streams


class BaseView:
    """Prints the streams at every reward.

    Args:
        env: The teacher.
        session: The session.
        serializer: Not used.
        show_world: Not used.
        byte_mode: Not used.
    """

    def __init__(
        self, env: Any, session: Any, serializer: Any = None, show_world: Any = None, byte_mode: bool = True
    ) -> None:
        self._env, self._session = env, session
        self._streams, self._lines = Streams(), LineView()
        session.env_token_updated.register(self.on_env_token_updated)
        session.learner_token_updated.register(self.on_learner_token_updated)
        session.total_reward_updated.register(self.on_total_reward_updated)

    def initialize(self) -> None:
        """Do nothing: there is no screen to set up."""

    def finalize(self) -> None:
        """Print the streams for the last time."""
        self._lines.print(self._streams)
        self._lines.close()

    def on_env_token_updated(self, token: str) -> None:
        """Take the teacher's symbol."""
        self._streams.hear(token, 0, "")

    def on_learner_token_updated(self, token: Any) -> None:
        """Take the learner's symbol."""
        self._streams.say(str(token or " "))

    def on_total_reward_updated(self, reward: int) -> None:
        """Print the streams."""
        self._streams.total = reward
        self._lines.print(self._streams)


class ConsoleView(BaseView):
    """Prints the streams, and asks for a line."""

    def get_input(self) -> str | None:
        """Ask for a line."""
        return self._lines.ask(self._streams)


PlainView = StdOutView = BaseView
StdInOutView = ConsoleView
