"""Batches whose state is one array: on processors (`kernel.py`) or on a device (`device.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from openfield.domains.commai.batched import program as at
from openfield.domains.commai.batched.batch import Array, Batch, start_streams
from openfield.domains.commai.batched.compiler import compile_tasks
from openfield.domains.commai.batched.program import TaskProgram
from openfield.domains.commai.settings import CommaiSettings

_ITEM = 8
"""Bytes of a number in memory."""


class BatchState(NamedTuple):
    """All that changes in a batch."""

    memory: Array
    symbols: Array


class ProgramBatch(Batch):
    """A batch with a row of numbers for each environment, and rooms for what it says and draws."""

    def __init__(
        self,
        curricula: Sequence[Sequence[str]],
        settings: CommaiSettings,
        seed: int | Sequence[int],
        rooms: int,
        arrays: Any = np,
    ) -> None:
        """Compile the tasks and lay out the memory.

        Args:
            curricula: The task ids of each environment.
            settings: How tasks follow each other and when an instance is solved.
            seed: As for `batch`.
            rooms: How many environments are stepped at the same time. Neighbours share a room.
            arrays: NumPy, or a module like it, whose arrays are where the batch is stepped.
        """
        super().__init__(curricula, settings, seed)
        self.arrays = arrays
        self._symbols: Array = arrays.zeros(self.n, arrays.int64 if arrays is np else arrays.int32)
        numbers = {tuple(tasks): number for number, tasks in enumerate(dict.fromkeys(map(tuple, curricula)))}
        program = compile_tasks(list(numbers), settings)
        self._lay_out(program, rooms)
        addresses = np.array([program.curricula[numbers[tuple(tasks)]] for tasks in curricula])
        self._state[:, at.CURRICULUM] = arrays.asarray(addresses)

    @property
    def state(self) -> BatchState:
        """All that changes in the batch. Another one of the same batch may take its place."""
        return BatchState(self._memory, self._symbols)

    @state.setter
    def state(self, state: BatchState) -> None:
        self._symbols = state.symbols
        self._use(state.memory)

    def _use(self, memory: Array) -> None:
        """Take an array as the memory, in which there is a row for each environment."""
        self._memory = memory
        self._address: int = memory.ctypes.data if self.arrays is np else 0
        rows = memory[self._first : self._first + self.n * at.STATE_SIZE]
        self._state: Array = rows.reshape(self.n, at.STATE_SIZE)

    def _lay_out(self, program: TaskProgram, rooms: int) -> None:
        """Give every environment its room.

        What most steps use stands close together: a walk over as many pages as environments takes five times as long.
        """
        arrays, n, sizes = self.arrays, self.n, program.sizes
        own = {at.SLOTS: sizes.slots, at.DIGITS: sizes.slots, at.OPTIONS: sizes.options, at.TURNS: sizes.turns}
        code, first = len(program.code), len(program.code) + len(program.factors)
        room, numbers, shared = sum(own.values()), arrays.arange(n), arrays.arange(n) * rooms // n
        spare = first + n * (at.STATE_SIZE + room)
        texts, text = spare + rooms * sizes.spare, 2 * sizes.text + sizes.deck
        symbols = n * text + sizes.heard * (n + rooms)
        memory = arrays.zeros(texts + -(-symbols // _ITEM), np.int64)
        memory[:code] = arrays.asarray(np.array(program.code))
        memory[code:first] = arrays.asarray(np.array(program.factors).view(np.int64))
        self._first = first
        self._use(memory)
        state = self._state
        start = first + n * at.STATE_SIZE
        for field, size in own.items():
            state[:, field] = start + numbers * room
            start += size
        state[:, at.TEXT] = texts * _ITEM + numbers * text
        state[:, at.EXPECTED] = state[:, at.TEXT] + sizes.text
        state[:, at.DECK] = state[:, at.EXPECTED] + sizes.text
        heard = texts * _ITEM + n * text
        state[:, at.HEARD] = heard + numbers
        state[:, at.ANSWER_HEARD] = heard + (n + shared) * sizes.heard
        state[:, at.SPARE] = spare + shared * sizes.spare
        for field, value in {at.COUNT_OF_ALL: n, at.TURNS_SIZE: sizes.turns, at.FIRST: first, at.FACTORS: code}.items():
            memory[field] = value

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

    def answers(self) -> Array:
        """Return the symbol that would be right now in each environment, or -1 where none is asked for."""
        answers: Array = self.arrays.empty(self.n, np.int64)
        self._write_answers(answers)
        return answers

    @abstractmethod
    def _write_answers(self, answers: Array) -> None:
        """Write the symbols that would be right."""

    def _seed(self) -> None:
        self._state[:, at.DRAWS] = self.arrays.asarray(start_streams(self.seeds).view(np.int64))
