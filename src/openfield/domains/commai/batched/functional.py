"""A batch as functions of a state, for programs that keep states themselves, as JAX programs do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openfield.domains.commai.batched.batch import Array
from openfield.domains.commai.batched.factory import Tasks, batch
from openfield.domains.commai.batched.program_batch import BatchState, ProgramBatch
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import InvalidInput


class FunctionalBatch:
    """The functions of a batch. A state that was given to one is used up, as a donated buffer is in JAX."""

    def __init__(self, tasks: Tasks, n: int, settings: CommaiSettings | None = None, device: str = "cpu") -> None:
        """Make the functions; the arguments are those of `batch`.

        Raises:
            InvalidInput: A task or a setting cannot be batched, there is no such device, or numba is missing.
        """
        stepped = batch(tasks, n, settings, device=device)
        if not isinstance(stepped, ProgramBatch):
            raise InvalidInput("Functions of a state need the compiled engine: install numba (extra `fast`).")
        self._batch = stepped
        self.n, self.tasks = stepped.n, stepped.tasks

    def init(self, seed: int | Sequence[int] = 0) -> tuple[BatchState, Array]:
        """Return a state in which all environments have just started, and the teacher's first symbols."""
        self._batch.reset(seed)
        state = self.copy(self._batch.state)
        return state, state.symbols.copy()

    def reset(self, state: BatchState, which: Array) -> tuple[BatchState, Array]:
        """Start the curricula of some environments anew; return the state and the last symbols of all."""
        self._batch.state = state
        symbols = self._batch.restart(which)
        return self._batch.state, symbols.copy()

    def step(self, state: BatchState, symbols: Any) -> tuple[BatchState, Array, Array]:
        """Let every environment hear a symbol; return the state, the teacher's symbols and the rewards."""
        self._batch.state = state
        said, rewards = self._batch.step(symbols)
        return self._batch.state, said.copy(), rewards.copy()

    def copy(self, state: BatchState) -> BatchState:
        """Return a copy of a state, to go on from it more than once."""
        return BatchState(state.memory.copy(), state.symbols.copy())
