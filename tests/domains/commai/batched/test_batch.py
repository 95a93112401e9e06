"""A batch says, rewards and judges what single environments do that draw the same numbers."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from openfield.domains import commai
from openfield.domains.commai.agents.oracle import Oracle
from openfield.domains.commai.batched import device
from openfield.domains.commai.curriculum import make_environment
from openfield.domains.commai.environment.environment import Environment
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import MICRO
from openfield.errors import AgentProtocol, InvalidInput, UnknownName

Answer = Callable[[str], str]


def say_random(environment: Environment, seed: int) -> Answer:
    rng = random.Random(seed)
    return lambda symbol: chr(int(rng.random() * 256))


def guess(environment: Environment, seed: int) -> Answer:
    """Say what is often a part of an answer."""
    rng = random.Random(seed)
    return lambda symbol: " .abcde0123"[int(rng.random() * 11)]


def echo(environment: Environment, seed: int) -> Answer:
    return lambda symbol: symbol


def know(environment: Environment, seed: int) -> Answer:
    return Oracle(environment).next


def wait_for_the_end(environment: Environment, seed: int) -> Answer:
    """Say nothing until the time is almost up, then many dots."""
    rng = random.Random(seed)

    def answer(symbol: str) -> str:
        late = environment.instance_steps > 9_970
        return "." if late and rng.random() < 0.4 else " "

    return answer


LEARNERS = (say_random, guess, echo, know)


def compare(
    curricula: Sequence[Sequence[str]],
    learners: Sequence[Callable[[Environment, int], Answer]],
    steps: int,
    compiled: bool,
    seed: int | Sequence[int] = 7,
    **options: Any,
) -> list[Environment]:
    """Play a batch and single environments side by side, and compare every step."""
    if compiled:
        pytest.importorskip("numba")
    settings = CommaiSettings(**options)
    batch = commai.batch(curricula, len(curricula), settings, seed=seed, compiled=compiled)
    singles = [make_environment(msgspec.structs.replace(settings, tasks=tuple(tasks))) for tasks in curricula]
    for number, single in enumerate(singles):
        single.rng = batch.stream(number)
    answers = [learner(single, number) for number, (learner, single) in enumerate(zip(learners, singles, strict=True))]
    said = [single.next(None)[0] for single in singles]
    symbols = batch.reset()
    assert symbols.tolist() == [ord(symbol) for symbol in said]
    for step in range(steps):
        heard = [answer(symbol) for answer, symbol in zip(answers, said, strict=True)]
        right = batch.answers().tolist()
        known = [
            " " if code < 0 else chr(code) for code, learner in zip(right, learners, strict=True) if learner is know
        ]
        assert known == [each for each, learner in zip(heard, learners, strict=True) if learner is know], f"step {step}"
        before = [single.finished for single in singles]
        expected = [single.next(symbol) for single, symbol in zip(singles, heard, strict=True)]
        symbols, rewards = batch.step(np.array([ord(symbol) for symbol in heard]))
        info = batch.training_info()
        said = [symbol for symbol, _ in expected]
        assert symbols.tolist() == [ord(symbol) for symbol in said], f"symbols of step {step}"
        assert rewards.tolist() == [reward for _, reward in expected], f"rewards of step {step}"
        assert info["instance"].tolist() == [single.finished for single in singles], f"instances of step {step}"
        ended = [single.finished != count for single, count in zip(singles, before, strict=True)]
        assert info["ended"].tolist() == ended, f"borders of step {step}"
        assert info["solved"].tolist() == [bool(single.result) for single in singles], f"results of step {step}"
        names = [single.task.name for single in singles if single.task is not None]
        assert [batch.tasks[task] for task in info["task"]] == names, f"tasks of step {step}"
        assert batch.over.tolist() == [single.over for single in singles], f"ends of step {step}"
    return singles


@pytest.mark.parametrize(("compiled", "steps"), [pytest.param(True, 1200, marks=pytest.mark.slow), (False, 250)])
def test_all_micro_tasks_are_those_of_the_single_engine(compiled: bool, steps: int) -> None:
    curricula = [(name,) for name in MICRO for _ in LEARNERS]
    singles = compare(curricula, LEARNERS * len(MICRO), steps, compiled, cyclic=True)
    assert len(MICRO) == 40
    if compiled:
        assert all(single.finished for single in singles[LEARNERS.index(know) :: len(LEARNERS)])


def compare_alone(name: str, seeds: int) -> None:
    """Play a task with nothing else in its batch, half of the time well."""
    learners = (know, guess) * (seeds // 2)
    compare([(name,)] * seeds, learners, 150, compiled=True, seed=list(range(seeds)), cyclic=True)


@pytest.mark.parametrize("name", MICRO)
def test_a_task_alone_is_that_of_the_single_engine(name: str) -> None:
    compare_alone(name, 10)


@pytest.mark.parametrize("name", MICRO)
def test_a_batch_of_one_is_the_single_engine(name: str) -> None:
    for seed, learner in enumerate((know, guess)):
        compare([(name,)], (learner,), 300, compiled=True, seed=seed, cyclic=True)


def test_what_a_batch_of_one_returns_stays_as_it_is() -> None:
    pytest.importorskip("numba")
    single, batch = make_environment(CommaiSettings(tasks=("micro1",))), commai.batch("micro1", 1)
    single.rng = batch.stream(0)
    expected, told = [single.next(None)[0]], [batch.reset()]
    for _ in range(60):
        expected.append(single.next(expected[-1])[0])
        told.append(batch.step(told[-1])[0])
    assert [chr(symbols[0]) for symbols in told] == expected
    with pytest.raises(ValueError, match="read-only"):
        told[-1][0] = 0
    assert batch.restart(np.array([0])).shape == (1,)


@pytest.mark.parametrize("n", [1, 2])
def test_whole_numbers_of_any_kind_are_heard(n: int) -> None:
    pytest.importorskip("numba")
    batches = [commai.batch("micro2", n, CommaiSettings(cyclic=True), compiled=True) for _ in range(4)]
    for batch in batches:
        batch.reset()
    numbers = np.random.default_rng(1).integers(32, 127, (30, 2 * n))
    for row in numbers:
        heard = [row[::2].copy(), row[::2], row[::2].astype(np.uint8), row[::2].tolist()]
        steps = [batch.step(each) for batch, each in zip(batches, heard, strict=True)]  # type: ignore[arg-type]
        assert all(np.array_equal(steps[0], step) for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", MICRO)
def test_a_task_alone_is_that_of_the_single_engine_for_400_seeds(name: str) -> None:
    compare_alone(name, 400)


@pytest.mark.slow
@pytest.mark.parametrize("name", MICRO)
def test_a_task_beside_any_other_is_that_of_the_single_engine(name: str) -> None:
    """Give each task ten seeds beside each of the others: about 400 in all."""
    for partner in [*MICRO][[*MICRO].index(name) + 1 :]:
        pair = [(name,), (partner,)] * 10
        compare(pair, (know,) * 20, 60, compiled=True, seed=list(range(20)), cyclic=True)


OPTIONS: list[dict[str, Any]] = [
    {"alphabet_size": 3, "mapping_size": 5, "distinct": True, "vocabulary": "rare", "compat": "round1"},
    {"alphabet_size": 26, "mapping_size": 100, "required_consecutive_rewards": 3, "success_tolerance": 0.15},
    {"failed_task_tolerance": 0.35, "success_tolerance": 0.0, "required_consecutive_rewards": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["small and lenient", "large", "impatient"])
def test_settings_of_tasks_count(options: dict[str, Any]) -> None:
    curricula = [(name,) for name in MICRO for _ in LEARNERS]
    compare(curricula, LEARNERS * len(MICRO), 300, compiled=True, cyclic=True, **options)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("scheduler", ["random", "sequential", "incremental", "consecutive"])
def test_tasks_follow_each_other_as_the_scheduler_says(scheduler: str, compiled: bool) -> None:
    easy = ("micro1", "micro19", "micro5.11", "micro20", "micro19")
    short = {"required_consecutive_rewards": 2, "success_threshold": 2, "scheduler": scheduler}
    singles = compare([easy, ("micro4", "micro2"), easy], (know, echo, guess), 1200, compiled, **short)
    assert singles[1].over == (scheduler == "consecutive")
    assert singles[0].finished >= 10


@pytest.mark.parametrize("compat", ["", "round1"])
def test_an_instance_times_out(compat: str) -> None:
    tasks = ("micro5.4", "micro5.18", "micro7.1", "micro8", "micro13.2", "micro20")
    curricula = [(name,) for name in tasks]
    singles = compare(curricula, (wait_for_the_end,) * 6, 10_200, True, compat=compat, cyclic=True)
    assert min(single.finished for single in singles) >= 1


@pytest.mark.parametrize("compiled", [True, False])
def test_a_batch_starts_again(compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba")
    batch = commai.batch(["micro4"], 3, CommaiSettings(success_threshold=1), compiled=compiled)
    symbols = first = batch.reset(seed=[5, 5, 6])
    assert first[0] == first[1]
    for _ in range(10):
        symbols, rewards = batch.step(symbols)
        assert rewards.tolist() == [1.0, 1.0, 1.0]
    assert batch.over.tolist() == [True] * 3
    assert batch.step(symbols)[0].tolist() == [32] * 3
    batch.restart(np.array([1]))
    assert batch.over.tolist() == [True, False, True]
    assert batch.training_info()["instance"].tolist() == [1, 0, 1]
    assert batch.reset().tolist() == first.tolist()


def test_what_cannot_be_batched_is_refused() -> None:
    with pytest.raises(InvalidInput, match="mini0 is not a micro task"):
        commai.batch("all", 2)
    with pytest.raises(UnknownName, match="micro99"):
        commai.batch("micro99", 2)
    with pytest.raises(InvalidInput, match="Setting 'strict' cannot be batched"):
        commai.batch("micro", 2, CommaiSettings(strict=True))
    with pytest.raises(InvalidInput, match="scheduler=dependencies"):
        commai.batch("micro", 2, CommaiSettings(scheduler="dependencies"))
    with pytest.raises(InvalidInput, match="one list of names for each of the 3"):
        commai.batch([["micro1"], ["micro2"]], 3)
    with pytest.raises(InvalidInput, match="at least one environment"):
        commai.batch("micro1", 0)
    with pytest.raises(InvalidInput, match="2 seeds for 3"):
        commai.batch("micro1", 3, seed=[1, 2], compiled=False)


@pytest.mark.parametrize("compiled", [True, False])
def test_only_bytes_are_heard(compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba")
    batch = commai.batch("micro1", 2, compiled=compiled)
    first = batch.reset()
    for wrong in ([256, 32], [-1, 32], [32], [32.0, 32.0]):
        with pytest.raises(AgentProtocol, match=r"A batch .*hears"):
            batch.step(np.array(wrong))
    assert batch.reset().tolist() == first.tolist()
    alone = commai.batch("micro1", 1, compiled=compiled)
    alone.reset()
    for wrong in ([256], [-1], [32, 32], [32.0], [True], []):
        with pytest.raises(AgentProtocol, match=r"A batch .*hears"):
            alone.step(np.array(wrong))


def test_a_large_batch_on_all_processors_is_the_small_ones_together(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = pytest.importorskip("openfield.domains.commai.batched.kernel", exc_type=ImportError)
    monkeypatch.setattr(kernel, "count_processors", lambda: 3)
    tasks, n, settings = [*MICRO], 6_300, CommaiSettings(cyclic=True)
    curricula = [(tasks[number % len(tasks)],) for number in range(n)]
    large = commai.batch(curricula, n, settings, seed=5)
    parts = [slice(0, 2_000), slice(2_000, 4_000), slice(4_000, n)]  # too small for threads of their own
    small = [commai.batch(curricula[part], len(curricula[part]), settings, seed=5 + part.start) for part in parts]
    assert len(large._shares) == 3
    assert large.reset().tolist() == np.concatenate([each.reset() for each in small]).tolist()
    rng = np.random.default_rng(1)
    for step in range(150):
        right = large.answers()
        heard = np.where(right < 0, ord(" "), np.where(rng.random(n) < 0.8, right, rng.integers(0, 256, n)))
        symbols, rewards = large.step(heard)
        stepped = [each.step(heard[part]) for each, part in zip(small, parts, strict=True)]
        assert (symbols == np.concatenate([symbol for symbol, _ in stepped])).all(), f"symbols of step {step}"
        assert (rewards == np.concatenate([reward for _, reward in stepped])).all(), f"rewards of step {step}"
    with pytest.raises(AgentProtocol, match="from 0 to 255, not 300"):
        large.step(np.full(n, 300))


def test_devices_are_named_and_there() -> None:
    with pytest.raises(InvalidInput, match="'device' is 'cpu', 'cuda' or 'cuda:1', not 'gpu'"):
        device.find_card(object(), "gpu")
    with pytest.raises(InvalidInput, match="no meaning on device='cuda'"):
        commai.batch("micro", 2, compiled=False, device="cuda")
