"""`core.session` of the original: a learner and an environment in conversation, with statistics."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from openfield.domains.commai.original.core.events import Observable


class Session:
    """A conversation without an end of its own.

    Args:
        env: The teacher.
        learner: The learner.
        default_sleep: Seconds to wait in each step.
    """

    def __init__(self, env: Any, learner: Any, default_sleep: float = 0.0) -> None:
        self._env, self._learner = env, learner
        self._default_sleep = self._sleep = default_sleep
        self._stopped = False
        self._total_time: int = 0
        self._total_reward: Any = 0
        self._task_time: Counter[str] = Counter()
        self._task_count: Counter[str] = Counter()
        self.env_token_updated, self.learner_token_updated = Observable(), Observable()
        self.total_reward_updated, self.total_time_updated = Observable(), Observable()
        env.task_updated.register(self._count_task)

    def run(self) -> None:
        """Play until `stop` is called or the curriculum is finished."""
        heard: Any = None
        self._stopped = False
        pay = getattr(self._learner, "try_reward", None) or getattr(self._learner, "reward", None)
        while not self._stopped:
            symbol, reward = self._env.next(heard)
            self.env_token_updated(symbol)
            if pay is not None:
                pay(reward)
            self._total_reward += reward
            if reward:
                self.total_reward_updated(self._total_reward)
            if self._sleep > 0:
                time.sleep(self._sleep)
            heard = self._learner.next(symbol)
            self.learner_token_updated(heard)
            self._count_step()
            if self._env.over:
                return

    def stop(self) -> None:
        """End `run` before its next step."""
        self._stopped = True

    def get_total_time(self) -> int:
        """Return the steps so far."""
        return self._total_time

    def get_total_reward(self) -> Any:
        """Return the sum of all rewards."""
        return self._total_reward

    def get_reward_per_task(self) -> dict[str, Any]:
        """Return the rewards by task."""
        rewards: dict[str, Any] = self._env.get_reward_per_task()
        return rewards

    def get_task_count(self) -> dict[str, int]:
        """Return how many instances of each task were started."""
        return dict(self._task_count)

    def get_task_time(self) -> dict[str, int]:
        """Return the steps by task."""
        return dict(self._task_time)

    def get_sleep(self) -> float:
        """Return the seconds to wait in each step."""
        return self._sleep

    def set_sleep(self, sleep: float) -> None:
        """Set the seconds to wait in each step."""
        self._sleep = max(0.0, sleep)

    def add_sleep(self, sleep: float) -> None:
        """Add to the seconds to wait in each step."""
        self.set_sleep(self._sleep + sleep)

    def reset_sleep(self) -> None:
        """Wait as long as in the beginning."""
        self._sleep = self._default_sleep

    def _count_task(self, task: Any) -> None:
        self._task_count[task.get_name()] += 1

    def _count_step(self) -> None:
        self._total_time += 1
        task = self._env._current_task
        if task is not None:
            self._task_time[task.get_name()] += 1
        self.total_time_updated(self._total_time)
