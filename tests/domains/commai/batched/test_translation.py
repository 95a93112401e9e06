"""The engine of devices is that of processors: translated and compiled for this machine, it says and pays the same."""

from __future__ import annotations

import ast
import ctypes
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from openfield.domains import commai
from openfield.domains.commai.batched import translation
from openfield.domains.commai.batched.batch import Array
from openfield.domains.commai.batched.program_batch import ProgramBatch
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import MICRO
from openfield.installation import find_program

ENTRIES = """
extern "C" void step_all(Number* memory, Number n, const Said* heard, Said* symbols, Paid* rewards) {
  for (Number i = 0; i < n; i++) {
    const Pair told = _step(memory, (double*)memory, (Symbol*)memory, find_row(memory, i), heard[i]);
    symbols[i] = told.first;
    rewards[i] = told.second;
  }
}
extern "C" void start_all(Number* memory, Number n, const Number* which, Said* symbols) {
  for (Number i = 0; i < n; i++) symbols[which[i]] = _begin(memory, (Symbol*)memory, find_row(memory, which[i]));
}
extern "C" void answer_all(Number* memory, Number n, Said* answers) {
  for (Number i = 0; i < n; i++) answers[i] = _answer(memory, (Symbol*)memory, find_row(memory, i));
}
"""


class TranslatedBatch(ProgramBatch):
    """Steps the translated engine in one thread, with a room for each environment as on a device."""

    def __init__(self, engine: Any, curricula: Sequence[Sequence[str]], settings: CommaiSettings, seed: int) -> None:
        super().__init__(curricula, settings, seed, rooms=len(curricula))
        self._engine = engine
        self._said = np.zeros(self.n, np.int32)

    def restart(self, which: Array) -> Array:
        self._call("start_all", np.asarray(which, np.int64), self._said)
        return self._said.astype(np.int64)

    def _write_answers(self, answers: Array) -> None:
        written = np.zeros(self.n, np.int32)
        self._call("answer_all", written)
        answers[:] = written

    def step(self, symbols: Array) -> tuple[Array, Array]:
        rewards = np.zeros(self.n, np.float32)
        self._call("step_all", symbols.astype(np.int32), self._said, rewards)
        return self._said.astype(np.int64), rewards.astype(float)

    def _call(self, name: str, *arrays: Array) -> None:
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        getattr(self._engine, name)(
            ctypes.c_void_p(self._memory.ctypes.data), ctypes.c_int64(len(arrays[0])), *pointers
        )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = find_program("g++")
    if compiler is None:
        pytest.skip("the translated engine is compiled with g++, which is not installed")
    folder = tmp_path_factory.mktemp("engine")
    source = "#define ON_DEVICE static\n" + translation.translate_kernel() + ENTRIES
    (folder / "engine.cpp").write_text(source)
    command = [compiler, "-std=c++17", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC"]
    subprocess.run([*command, "engine.cpp", "-o", "engine.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "engine.so"))


SETTINGS = [
    CommaiSettings(cyclic=True),
    CommaiSettings(cyclic=True, alphabet_size=3, mapping_size=5, distinct=True, vocabulary="rare", compat="round1"),
    CommaiSettings(alphabet_size=26, mapping_size=100, required_consecutive_rewards=3, success_threshold=2),
    CommaiSettings(scheduler="random", required_consecutive_rewards=2, failed_task_tolerance=0.35),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["usual", "small", "large", "random"])
def test_the_translated_engine_is_the_compiled_one(engine: Any, settings: CommaiSettings) -> None:
    curricula = [(name,) for name in MICRO for _ in range(3)] + [tuple(MICRO)] * 8
    batches = [
        commai.batch(curricula, len(curricula), settings, seed=3),
        TranslatedBatch(engine, curricula, settings, seed=3),
    ]
    first, second = (batch.reset() for batch in batches)
    assert first.tolist() == second.tolist()
    rng, skill = np.random.default_rng(7), np.tile([0.5, 0.9, 1.0, 0.97], len(curricula))[: len(curricula)]
    for step in range(400):
        right, same = (batch.answers() for batch in batches)
        assert right.tolist() == same.tolist(), f"answers of step {step}"
        guess = rng.choice(np.frombuffer(b" .abcdef0123", np.uint8), len(curricula))
        heard = np.where(rng.random(len(curricula)) < skill, np.where(right < 0, ord(" "), right), guess)
        symbols, rewards = batches[0].step(heard)
        others, paid = batches[1].step(heard)
        assert symbols.tolist() == others.tolist(), f"symbols of step {step}"
        assert rewards.tolist() == paid.tolist(), f"rewards of step {step}"
        info, told = (batch.training_info() for batch in batches)
        assert all((info[name] == told[name]).all() for name in info), f"facts of step {step}"
        if (over := np.flatnonzero(batches[0].over)).size:
            assert batches[0].restart(over).tolist() == batches[1].restart(over).tolist()


@pytest.mark.parametrize(
    "code", ["x = [y for y in z]", "x = a / b", "x = a if b in c else d", "del a", "x = other.a", "x = print(a)"]
)
def test_what_is_not_known_is_refused_with_its_line(code: str) -> None:
    function = ast.parse(f"def _f(a: int) -> None:\n    {code}").body[0]
    assert isinstance(function, ast.FunctionDef)
    with pytest.raises(translation.Untranslatable, match=r"kernel.py, line 2: '.*' cannot be translated"):
        translation._Function(function).define()
