"""Many environments of a domain that step at once, in threads, to train agents.

`gymnasium.make_vec("openfield/DoomDuel-v0", num_envs=8, vectorization_mode="vector_entry_point")` makes one. It suits
worlds that wait for something else, such as an engine in a process of its own. It plays the same episodes as
`gymnasium.make` with the same seeds, and records nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import msgspec
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from openfield.capabilities import LeavesEpisodes
from openfield.core import Ask, Belief, Reply, Turn, World
from openfield.errors import InvalidInput
from openfield.gym.environment import choose_trial, find_spaces, to_gym
from openfield.installation import count_processors
from openfield.registry import find_domain
from openfield.spaces import Choice, from_numpy, to_numpy
from openfield.trial import Trial

Array = np.ndarray[Any, Any]
MAX_SEED = 1 << 31


class ThreadedVectorEnv(VectorEnv[Any, Any, Array]):
    """Many environments: each draws new trials for ever, with the settings of the domain's environment or with others.

    After an episode's end the next step begins the next one, whatever the action is.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int,
        domain: str,
        trial: Trial | None = None,
        settings: Mapping[str, Any] | None = None,
        threads: int | None = None,
        **others: Any,
    ) -> None:
        """Make the environments; the arguments are those of `gymnasium.make_vec`.

        Args:
            num_envs: How many there are.
            domain: The domain's name.
            trial: The trial that all play, each with a seed of its own.
            settings: Settings of the domain, if there is no trial, such as `{"frame_skip": 4}`.
            threads: How many threads step them; by default one for each processor.
            others: Arguments of single environments, which are refused.
        """
        if others:
            raise InvalidInput(
                f"Many environments of {domain} at once have no argument '{next(iter(others))}': they draw no pictures "
                'for people and record nothing. To have that, write vectorization_mode="sync".'
            )
        self._domain = find_domain(domain, settings)
        self._trial = choose_trial(self._domain, trial, settings)
        self._actions, self._observations = find_spaces(self._domain, self._trial)
        self.num_envs = num_envs
        self.single_action_space, self.single_observation_space = to_gym(self._actions), to_gym(self._observations)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._worlds: list[World | None] = [None] * num_envs
        self._turns: list[Turn] = [Turn()] * num_envs
        self._rewards = np.zeros(num_envs)
        self._seeds: list[np.random.Generator] = []
        count = threads or count_processors()
        self._threads = _ThreadGroup(min(count, num_envs), num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment: from a seed (environment i has seed + i), or from one for each."""
        if isinstance(seed, int | np.integer):
            given: list[int | None] = [int(seed) + number for number in range(self.num_envs)]
        else:
            given = [None] * self.num_envs if seed is None else list(seed)
        if not self._seeds or seed is not None:
            self._seeds = [np.random.default_rng(each) for each in given]
        self._threads.work(lambda number: self._open(number, given[number]))
        return self._observe(), {}

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Take an action in every environment; those whose episode has ended begin the next one instead."""
        if not self._seeds:
            raise gymnasium.error.ResetNeeded("Call reset() first.")
        options = self._actions.options if isinstance(self._actions, Choice) else None
        names = (
            [options[each] for each in actions] if options else [from_numpy(self._actions, each) for each in actions]
        )
        self._threads.work(lambda number: self._step(number, names[number]))
        turns = self._turns
        terminated = np.array([turn.last == "terminated" for turn in turns])
        truncated = np.array([turn.last == "truncated" for turn in turns])
        return self._observe(), self._rewards.copy(), terminated, truncated, {}

    def close_extras(self, **_: Any) -> None:
        """Release the engines."""
        self._threads.close()
        for world in self._worlds:
            if world is not None:
                world.close()
        self._worlds = [None] * self.num_envs

    def _open(self, number: int, seed: int | None = None) -> None:
        """Begin a trial with a seed; without one, the next episode, or the next trial that is drawn."""
        old = self._worlds[number]
        if old is not None and seed is None and isinstance(old, LeavesEpisodes) and old.leave_episode():
            self._rewards[number] = 0.0
            self._follow(number, old, old.reset())
            return
        if old is not None:
            old.close()
        chosen = int(self._seeds[number].integers(MAX_SEED)) if seed is None else seed
        world = self._worlds[number] = self._domain.world(msgspec.structs.replace(self._trial, seed=chosen))
        self._rewards[number] = 0.0
        self._follow(number, world, world.reset())

    def _step(self, number: int, action: Any) -> None:
        world, ended = self._worlds[number], self._turns[number].last is not None
        if world is None or (ended and world.over):
            self._open(number)
        else:
            turn = world.step(Reply(None if ended else action))
            self._rewards[number] = 0.0 if ended else turn.reward
            self._follow(number, world, turn)

    def _follow(self, number: int, world: World, turn: Turn) -> None:
        """Answer other questions until an action is due or the episode ends."""
        while turn.ask is not Ask.ACT and turn.last is None:
            turn = world.step(Reply(None, Belief(0.0) if turn.ask is Ask.BELIEF else None))
            self._rewards[number] += turn.reward
        self._turns[number] = turn

    def _observe(self) -> Any:
        seen = [turn.observation for turn in self._turns]
        if isinstance(seen[0], np.ndarray):
            return np.stack(seen)
        seen = [to_numpy(self._observations, each) for each in seen]
        empty: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, seen, empty)


class _ThreadGroup:
    """Threads that do the same work for some numbers each, once for every call. The caller is one of them.

    Bare locks wake a thread in a few microseconds; a pool's futures take as long as a tick.
    """

    def __init__(self, threads: int, numbers: int) -> None:
        self._shares = [range(start, numbers, threads) for start in range(threads)]
        self._begin = [threading.Lock() for _ in self._shares[1:]]
        self._end = [threading.Lock() for _ in self._shares[1:]]
        self._task: Callable[[int], None] | None = None
        self._failures: list[BaseException] = []
        for lock in (*self._begin, *self._end):
            lock.acquire()
        for begin, end, share in zip(self._begin, self._end, self._shares[1:], strict=True):
            threading.Thread(target=self._serve, args=(begin, end, share), daemon=True).start()

    def work(self, task: Callable[[int], None]) -> None:
        """Do a task for every number, and raise what one of them raised."""
        self._task, self._failures = task, []
        for begin in self._begin:
            begin.release()
        self._do(task, self._shares[0])
        for end in self._end:
            end.acquire()
        if self._failures:
            raise self._failures[0]

    def close(self) -> None:
        """Let all threads end."""
        self._task = None
        for begin in self._begin:
            begin.release()
        self._begin = self._end = []

    def _serve(self, begin: threading.Lock, end: threading.Lock, share: range) -> None:
        while True:
            begin.acquire()
            if self._task is None:
                return
            self._do(self._task, share)
            end.release()

    def _do(self, task: Callable[[int], None], share: range) -> None:
        try:
            for number in share:
                task(number)
        except BaseException as error:  # the caller of `work` raises it
            self._failures.append(error)
