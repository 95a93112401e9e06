"""From tasks and settings to a batch, compiled or not."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import msgspec
import numpy as np

from openfield.domains.commai.batched.batch import MAX_SYMBOL, Array, Batch
from openfield.domains.commai.curriculum import make_environment
from openfield.domains.commai.environment.environment import Environment
from openfield.domains.commai.environment.task import BYTES, SILENCE
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import MICRO, task_ids
from openfield.errors import InvalidInput, MissingExtra

Tasks = str | Sequence[str] | Sequence[Sequence[str]]
SETTINGS = (
    *("tasks", "scheduler", "success_threshold", "cyclic", "max_steps", "compat", "vocabulary", "distinct"),
    *("required_consecutive_rewards", "success_tolerance", "failed_task_tolerance", "alphabet_size", "mapping_size"),
)
"""The settings that a batch follows."""
SCHEDULERS = ("consecutive", "incremental", "sequential", "random")
_SPACE = ord(SILENCE)
_WIDTH = 256
"""Symbols of a text at first; a longer one makes room."""


def batch(
    tasks: Tasks,
    n: int,
    settings: CommaiSettings | None = None,
    seed: int | Sequence[int] = 0,
    compiled: bool | None = None,
    device: str = "cpu",
) -> Batch:
    """Make n environments that are stepped in lockstep, to train a learner.

    Args:
        tasks: A micro task or a group such as `micro`; a list of them, which is the curriculum of every environment;
            or a list of n lists, one curriculum for each.
        n: The number of environments.
        settings: How tasks follow each other and when an instance is solved; see `SETTINGS` for those that count.
        seed: The seed of the first environment, and those of the others are the numbers behind it; or one for each.
        compiled: Whether to use numba; by default where it is installed.
        device: Where the batch is stepped: `cpu`, on all processors, or a card such as `cuda` or `cuda:1`.

    Raises:
        InvalidInput: A task or a setting cannot be batched, or there is no such device.
        MissingExtra: What steps it there is not installed.
        UnknownName: There is no such task.
    """
    if n < 1:
        raise InvalidInput(f"A batch needs at least one environment, not {n}.")
    chosen = settings or CommaiSettings()
    _check_settings(chosen)
    curricula = _read_curricula(tasks, n)
    if device != "cpu":
        if compiled is False:
            raise InvalidInput(f"compiled=False has no meaning on device='{device}'.")
        from openfield.domains.commai.batched.device import DeviceBatch

        return DeviceBatch(curricula, chosen, seed, device)
    if compiled is None:
        compiled = find_spec("numba") is not None
    if not compiled:
        return PlainBatch(curricula, chosen, seed)
    try:
        from openfield.domains.commai.batched.kernel import CompiledBatch, CompiledSingle
    except ImportError:
        raise MissingExtra("fast", "compiled=True") from None
    return (CompiledSingle if n == 1 else CompiledBatch)(curricula, chosen, seed)


def _check_settings(settings: CommaiSettings) -> None:
    """Refuse settings that a batch cannot follow."""
    default = CommaiSettings()
    for name in settings.__struct_fields__:
        if name not in SETTINGS and getattr(settings, name) != getattr(default, name):
            raise InvalidInput(f"Setting '{name}' cannot be batched. A batch follows: {', '.join(SETTINGS)}.")
    if settings.scheduler not in SCHEDULERS:
        known = ", ".join(SCHEDULERS)
        raise InvalidInput(f"Setting scheduler={settings.scheduler} cannot be batched. Use one of: {known}.")


def _read_curricula(tasks: Tasks, n: int) -> list[tuple[str, ...]]:
    """Return the task ids of each environment."""
    if isinstance(tasks, str):
        tasks = [tasks]
    if not tasks:
        raise InvalidInput("A batch needs at least one task.")
    if all(isinstance(each, str) for each in tasks):
        return [_read_curriculum(tasks)] * n  # type: ignore[arg-type]
    if len(tasks) != n or any(isinstance(each, str) or not each for each in tasks):
        raise InvalidInput(f"'tasks' must be names, or one list of names for each of the {n} environments.")
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    for each in tasks:
        if tuple(each) not in known:
            known[tuple(each)] = _read_curriculum(each)
    return [known[tuple(each)] for each in tasks]


def _read_curriculum(names: Sequence[str]) -> tuple[str, ...]:
    ids = tuple(task_ids(names))
    for name in ids:
        if name not in MICRO:
            raise InvalidInput(f"{name} is not a micro task. A batch plays only these: {', '.join(MICRO)}.")
    return ids


class PlainBatch(Batch):
    """A batch of single environments whose texts are rows of an array.

    Most steps say one more symbol of a text. NumPy does them for all environments at once.
    """

    def __init__(
        self, curricula: Sequence[Sequence[str]], settings: CommaiSettings, seed: int | Sequence[int] = 0
    ) -> None:
        super().__init__(curricula, settings, seed)
        n = self.n
        self._environments = [self._make(number) for number in range(n)]
        self._numbers = {name: number for number, name in enumerate(self.tasks)}
        self._speech = np.zeros((n, _WIDTH), np.uint8)
        self._at, self._spoken, self._penalties = (np.zeros(n, np.int64) for _ in range(3))
        self._symbols = np.zeros(n, np.int64)
        self._task, self._finished = np.full(n, -1), np.zeros(n, np.int64)
        self._ended, self._solved, self._over = (np.zeros(n, bool) for _ in range(3))

    def restart(self, which: Array) -> Array:
        """Start the curricula of some environments anew, with further draws; return the last symbols of all."""
        for number in which.tolist():
            stream = self._environments[number].rng
            environment = self._environments[number] = self._make(number)
            environment.rng = stream
            symbol, _ = environment.next(None)
            self._symbols[number] = ord(symbol)
            self._penalties[number] = self._finished[number] = 0
            self._solved[number] = self._over[number] = False
            self._note(number, environment)
            self._note_task(number, environment)
        self._ended[which] = False
        return self._symbols.copy()

    @property
    def over(self) -> Array:
        """Which curricula have ended."""
        return self._over.copy()

    def training_info(self) -> dict[str, Array]:
        """Return what only training may use, by environment."""
        return {
            "task": self._task.copy(),
            "instance": self._finished.copy(),
            "ended": self._ended.copy(),
            "solved": self._solved.copy(),
        }

    def answers(self) -> Array:
        """Return the symbol that would be right now in each environment, or -1 where none is asked for."""
        talking = self._at < self._spoken
        return np.where(talking, -1, [_find_answer(environment) for environment in self._environments])

    def _seed(self) -> None:
        for number, environment in enumerate(self._environments):
            environment.rng = self.stream(number)

    def step(self, symbols: Array) -> tuple[Array, Array]:
        """Let every environment hear a symbol; return the teacher's symbols and the rewards."""
        heard, at = self._convert(symbols), self._at
        if heard.view(np.uint64).max() > MAX_SYMBOL:
            self._refuse(heard)
        talking = at < self._spoken
        said = self._speech[np.arange(self.n), np.minimum(at, self._speech.shape[1] - 1)].astype(np.int64)
        interrupted = talking & (heard != _SPACE)
        rewards = -interrupted.astype(np.float64)
        self._penalties += interrupted
        at += talking
        self._ended[:] = False
        listening = np.flatnonzero(~talking)
        spoken, paid = self._listen(listening, heard[listening].tolist())
        said[listening], rewards[listening] = spoken, paid
        self._penalties[listening] = 0
        self._symbols = said
        return said.copy(), rewards

    def _listen(self, which: Array, heard: list[int]) -> tuple[list[int], list[int]]:
        """Let single environments hear their symbols, after those they missed."""
        symbols, rewards = [], []
        states = zip(which.tolist(), heard, self._at[which].tolist(), self._penalties[which].tolist(), strict=True)
        for number, code, at, penalties in states:
            environment = self._environments[number]
            environment.at = at
            environment.penalties += penalties
            symbol, reward = environment.next(BYTES[code])
            symbols.append(ord(symbol))
            rewards.append(reward)
            self._note(number, environment)
        return symbols, rewards

    def _note(self, number: int, environment: Environment) -> None:
        """Copy an environment's next words and the place of its conversation."""
        at, spoken = environment.at, environment.spoken
        self._at[number], self._spoken[number] = at, spoken
        if at < spoken:
            if spoken > self._speech.shape[1]:
                self._speech = np.pad(self._speech, ((0, 0), (0, spoken)))
            self._speech[number, :spoken] = np.frombuffer(environment.text[:spoken].encode("latin-1"), np.uint8)
        if environment.finished != self._finished[number]:
            self._finished[number], self._ended[number] = environment.finished, True
            self._solved[number], self._over[number] = bool(environment.result), environment.over
            self._note_task(number, environment)

    def _note_task(self, number: int, environment: Environment) -> None:
        if environment.task is not None:
            self._task[number] = self._numbers[environment.task.name]

    def _make(self, number: int) -> Environment:
        settings = msgspec.structs.replace(self.settings, tasks=tuple(self.curricula[number]))
        return make_environment(settings)


def _find_answer(environment: Environment) -> int:
    """Return the symbol that would be right in an environment whose teacher is silent, or -1 if none is asked for."""
    if environment.instance is None or not environment.running:
        return -1
    return ord(environment.instance.hint()[:1] or ".")
