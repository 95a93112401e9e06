"""A batch stepped by compiled code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openfield.domains.commai.batched import program as at
from openfield.domains.commai.batched.batch import Array, Batch
from openfield.domains.commai.batched.compiler import compile_tasks
from openfield.domains.commai.batched.kernel import start_all, step_all
from openfield.domains.commai.batched.program import TaskProgram
from openfield.domains.commai.batched.streams import start_stream
from openfield.domains.commai.settings import CommaiSettings


class CompiledBatch(Batch):
    """A batch whose state is arrays with a row per environment."""

    def __init__(
        self, curricula: Sequence[Sequence[str]], settings: CommaiSettings, seed: int | Sequence[int] = 0
    ) -> None:
        super().__init__(curricula, settings, seed)
        different = {tuple(tasks): number for number, tasks in enumerate(dict.fromkeys(map(tuple, curricula)))}
        program = compile_tasks(list(different), settings)
        self._lay_out(program)
        self._factors = np.array(program.factors)
        self._state[:, at.CURRICULUM] = [program.curricula[different[tuple(tasks)]] for tasks in curricula]
        self._symbols = np.zeros(self.n, np.int64)

    def _lay_out(self, program: TaskProgram) -> None:
        """Give every environment its room.

        What most steps use stands close together: a walk over as many pages as environments takes five times as long.
        """
        n, sizes, code = self.n, program.sizes, len(program.code)
        rooms = {at.SLOTS: sizes.slots, at.DIGITS: sizes.slots, at.OPTIONS: sizes.options, at.TURNS: sizes.turns}
        room, numbers = sum(rooms.values()), np.arange(n)
        self._memory = np.zeros(code + n * (at.STATE_SIZE + room), np.int64)
        self._memory[:code] = program.code
        self._environments = code + numbers * at.STATE_SIZE
        state = self._state = self._memory[code : code + n * at.STATE_SIZE].reshape(n, at.STATE_SIZE)
        start = code + n * at.STATE_SIZE
        for field, size in rooms.items():
            state[:, field] = start + numbers * room
            start += size
        text = 2 * sizes.text + sizes.deck
        state[:, at.TEXT] = numbers * text
        state[:, at.EXPECTED] = state[:, at.TEXT] + sizes.text
        state[:, at.DECK] = state[:, at.EXPECTED] + sizes.text
        state[:, at.HEARD] = n * text + sizes.heard + numbers
        self._texts = np.zeros(n * text + sizes.heard * (n + 1), np.uint8)
        self._memory[[at.ANSWER_HEARD, at.COUNT_OF_ALL, at.TURNS_SIZE]] = n * text, n, sizes.turns

    def restart(self, which: Array) -> Array:
        """Start the curricula of some environments anew, with further draws; return the last symbols of all."""
        start_all(self._memory, self._texts, self._environments, which, self._symbols)
        return self._symbols.copy()

    @property
    def over(self) -> Array:
        """Which curricula have ended."""
        over: Array = self._state[:, at.OVER] == 1
        return over

    def training_info(self) -> dict[str, Array]:
        """Return what only training may use, by environment."""
        state = self._state
        return {
            "task": state[:, at.TASK_NUMBER].copy(),
            "instance": state[:, at.FINISHED].copy(),
            "ended": state[:, at.ENDED] == 1,
            "solved": state[:, at.RESULT] == 1,
        }

    def _seed(self) -> None:
        counters = np.array([start_stream(seed) for seed in self.seeds], np.uint64)
        self._state[:, at.DRAWS] = counters.view(np.int64)

    def _step(self, heard: Array) -> tuple[Array, Array]:
        rewards = np.empty(self.n)
        symbols = np.empty(self.n, np.int64)
        step_all(self._memory, self._factors, self._texts, self._environments, heard, symbols, rewards)
        self._symbols = symbols
        return symbols, rewards
