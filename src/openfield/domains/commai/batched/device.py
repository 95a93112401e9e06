"""A batch on an NVIDIA card: the compiled engine, translated, with a thread for each environment.

Symbols, rewards and answers are arrays on the card that PyTorch, JAX and CuPy take without a copy. Needs CuPy (extra
`cuda`), which compiles the engine when the first batch is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from openfield.card import count_cards, read_card
from openfield.domains.commai.batched.batch import MAX_SYMBOL, Array
from openfield.domains.commai.batched.program_batch import ProgramBatch
from openfield.domains.commai.batched.translation import translate_kernel
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import AgentProtocol
from openfield.lazy import import_extra

_THREADS = 128
"""Threads of a block."""
_OPTIONS = ("-std=c++17", "-DON_DEVICE=__device__", "--fmad=false")
_ENTRIES = """
__device__ Number find_own() { return blockIdx.x * (Number)blockDim.x + threadIdx.x; }
#define TEXTS ((Symbol*)memory)
#define FACTORS ((const double*)memory)

extern "C" __global__ void step_all(
    Number* memory, Number n, const Said* heard, Said* symbols, Paid* rewards, int* odd) {
  const Number i = find_own();
  if (i >= n) return;
  Number said = heard[i];
  if (said < 0 || said > MAX_SYMBOL) { *odd = 1; said = ' '; }
  const Pair result = _step(memory, FACTORS, TEXTS, find_row(memory, i), said);
  symbols[i] = result.first;
  rewards[i] = result.second;
}

extern "C" __global__ void start_all(Number* memory, Number n, const Number* which, Said* symbols) {
  const Number i = find_own();
  if (i < n) symbols[which[i]] = _begin(memory, TEXTS, find_row(memory, which[i]));
}

extern "C" __global__ void answer_all(Number* memory, Number n, Said* answers) {
  const Number i = find_own();
  if (i < n) answers[i] = _answer(memory, TEXTS, find_row(memory, i));
}
""".replace("MAX_SYMBOL", str(MAX_SYMBOL))


class DeviceBatch(ProgramBatch):
    """A batch that lives on a card.

    `step` and `restart` return the same two arrays each time, and the next step writes into them: copy what you keep.
    Nothing is waited for, so a step can be part of a CUDA graph. Work goes to CuPy's current stream.
    """

    def __init__(
        self, curricula: Sequence[Sequence[str]], settings: CommaiSettings, seed: int | Sequence[int], device: str
    ) -> None:
        arrays = import_extra("cupy", "cuda", f"device='{device}'")
        self._place = find_card(arrays, device)
        with self._place:
            super().__init__(curricula, settings, seed, rooms=len(curricula), arrays=arrays)
            self._answers: Array = arrays.zeros(self.n, np.int32)
            self._heard: Array = arrays.zeros(self.n, np.int32)
            self._rewards: Array = arrays.zeros(self.n, np.float32)
            self._odd = arrays.zeros(1, np.int32)
            module = _compile_engine(arrays, self._place.id)
        self._step_all, self._start_all, self._answer_all = map(
            module.get_function, ("step_all", "start_all", "answer_all")
        )

    def restart(self, which: Array) -> Array:
        """Start the curricula of some environments anew, with further draws; return the last symbols of all."""
        self._check_symbols()
        with self._place:
            chosen = self.arrays.asarray(which, np.int64)
            if chosen.size:
                self._launch(self._start_all, chosen.size, chosen, self._symbols)
        return self._symbols

    def step(self, symbols: Any) -> tuple[Array, Array]:
        """Let every environment hear a symbol; return the teacher's symbols and the rewards.

        A number that cannot be a symbol is heard as silence, and refused when the batch is next asked for more: to
        look at once would take longer than the step.

        Args:
            symbols: An array on the card, of any library that speaks DLPack or CUDA's array interface, or NumPy's.

        Raises:
            AgentProtocol: There is not one whole number for each environment.
        """
        with self._place:
            heard = self._take(symbols)
            self._launch(self._step_all, self.n, heard, self._symbols, self._rewards, self._odd)
        return self._symbols, self._rewards

    def training_info(self) -> dict[str, Array]:
        """Return what only training may use, by environment."""
        self._check_symbols()
        return super().training_info()

    def answers(self) -> Array:
        """Return the symbol that would be right now in each environment, or -1 where none is asked for.

        The array is written again by the next call.
        """
        with self._place:
            self._write_answers(self._answers)
        return self._answers

    def _write_answers(self, answers: Array) -> None:
        self._launch(self._answer_all, self.n, answers)

    def _take(self, symbols: Any) -> Any:
        """Return symbols as the engine reads them, without a copy if they are whole numbers of 32 bits on the card."""
        arrays = self.arrays
        if not isinstance(symbols, arrays.ndarray | np.ndarray | list):
            has_interface = hasattr(symbols, "__cuda_array_interface__")
            symbols = arrays.asarray(symbols) if has_interface else arrays.from_dlpack(symbols)
        heard = arrays.asarray(symbols)
        if heard.shape != (self.n,) or heard.dtype.kind not in "iu":
            raise AgentProtocol(f"A batch of {self.n} hears as many whole numbers, not {heard.dtype} of {heard.shape}.")
        if heard.dtype == np.int32 and heard.flags.c_contiguous:
            return heard
        self._heard[...] = heard
        return self._heard

    def _launch(self, function: Any, threads: int, *given: Any) -> None:
        blocks = -(-threads // _THREADS)
        function((blocks,), (_THREADS,), (self._memory, np.int64(threads), *given))

    def _check_symbols(self) -> None:
        """Refuse what was heard since the last look, if a number was no symbol."""
        if int(self._odd[0]):
            self._odd[0] = 0
            raise AgentProtocol(f"A batch hears whole numbers from 0 to {MAX_SYMBOL}; an earlier step had others.")


def find_card(arrays: Any, device: str) -> Any:
    """Return the card that a text such as `cuda` or `cuda:1` names.

    Raises:
        InvalidInput: It names no device, or the machine has none.
    """
    card = read_card(device, "'device'")
    count_cards(lambda: arrays.cuda.runtime.getDeviceCount(), card, "'device'")
    return arrays.cuda.Device(card)


@cache
def _compile_engine(arrays: Any, card: int) -> Any:
    """Compile the engine, once for each card."""
    return arrays.RawModule(code=translate_kernel() + _ENTRIES, options=_OPTIONS)
