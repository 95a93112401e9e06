"""States of a batch that are kept outside: stepped one after the other, each goes on as its own batch would."""

import numpy as np
import pytest

from openfield.domains import commai
from openfield.domains.commai.batched import functional
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import InvalidInput

TASKS = [["micro1"], ["micro5.3", "micro9.1"], ["micro16"]]
SETTINGS = CommaiSettings(cyclic=True)


def test_two_states_are_two_batches() -> None:
    pytest.importorskip("numba")
    functions = functional.FunctionalBatch(TASKS, 3, SETTINGS)
    batches = [commai.batch(TASKS, 3, SETTINGS, seed=seed) for seed in (1, 20)]
    states, said = zip(*(functions.init(seed) for seed in (1, 20)), strict=True)
    assert [each.tolist() for each in said] == [batch.reset().tolist() for batch in batches]
    rng, states = np.random.default_rng(0), list(states)
    for step in range(300):
        for number, batch in enumerate(batches):
            heard = rng.integers(32, 60, 3)
            states[number], symbols, rewards = functions.step(states[number], heard)
            others, paid = batch.step(heard)
            assert symbols.tolist() == others.tolist(), f"step {step}"
            assert rewards.tolist() == paid.tolist(), f"step {step}"
    states[0], symbols = functions.reset(states[0], np.array([1]))
    assert symbols.tolist() == batches[0].restart(np.array([1])).tolist()


def test_a_copied_state_goes_on_twice() -> None:
    pytest.importorskip("numba")
    functions = functional.FunctionalBatch(TASKS, 3, SETTINGS)
    state, symbols = functions.init(5)
    kept = functions.copy(state)
    ends = []
    for start in (state, kept):
        at, said = start, symbols
        for _ in range(200):
            at, said, rewards = functions.step(at, said)
        ends.append((said.tolist(), rewards.tolist()))
    assert ends[0] == ends[1]


def test_functions_need_the_compiled_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openfield.domains.commai.batched.factory.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="install numba"):
        functional.FunctionalBatch(TASKS, 3, SETTINGS)
