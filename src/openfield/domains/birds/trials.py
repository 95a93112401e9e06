"""The trials of birds: read from configuration files, or drawn from the pool with an onset.

A trial carries a digest of its script and levels, so it is never played on other files than it was made from.
"""

from __future__ import annotations

import os.path
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

import msgspec
from msgspec.structs import replace

from openfield.course import Moment
from openfield.domains.birds.files.config import MAX_TRIALS, read_config
from openfield.domains.birds.files.generation import CONFIG_NAME, META_NAME, find_config
from openfield.domains.birds.files.pool import LevelPool, describe_levels, is_novel, natural_key, novelty_of
from openfield.domains.birds.harness import EvaluationScript, LevelSet
from openfield.domains.birds.novelty import mark_changes
from openfield.domains.birds.settings import BirdsSettings, Scenario
from openfield.errors import InvalidInput
from openfield.settings import changed_settings
from openfield.trial import Phase, Trial, derive, file_digest

LevelMoment = Moment[BirdsSettings]
NUMBER = "trial "
"""Prefix of the key in `Trial.files` that holds the number of a configured trial and its digest."""


def open_pool(settings: BirdsSettings) -> LevelPool:
    """Open the folder of levels: that of the settings, else the one beside the configuration, else the shipped one."""
    if settings.levels:
        return LevelPool(Path(settings.levels))
    if settings.config:
        path = Path(settings.config)
        beside = (path if os.path.isdir(path) else path.parent) / "Levels"
        if beside.is_dir():
            return LevelPool(beside)
    return LevelPool()


def list_trials(settings: BirdsSettings, seed: int, domain: str, version: int) -> list[Trial]:
    """Return the trials of a configuration, each as often as it says."""
    pool = open_pool(settings)
    listed, scripts = read_scripts(settings, pool, seed)
    kept = replace(settings, config=str(listed), trial="", trial_list="", told="all", endless=False)
    chosen = changed_settings(kept)
    return [
        Trial(
            domain=domain,
            version=version,
            seed=derive(seed, domain, number, execution),
            phases=script_phases(script),
            settings=describe_levels(script.names) | chosen,
            red_light=script.informed,
            files={f"{NUMBER}{number}": digest(script, pool)},
        )
        for number, script in scripts.items()
        for execution in range(max(0, script.executions))
    ]


def script_of(
    trial: Trial, settings: BirdsSettings, pool: LevelPool, moments: Sequence[LevelMoment]
) -> EvaluationScript:
    """Return the script of a trial, given what is true of each level; refuse it if its files have changed."""
    if not settings.config:
        _compare(trial.files, level_files(settings, pool))
        return draw_script(trial, settings, pool, moments)
    if not Path(settings.config).exists():
        raise InvalidInput(
            f"{settings.config} does not exist. A run keeps the path of its configuration as it was typed: continue "
            "from the folder in which the run was started."
        )
    scripts, number = read_config(Path(settings.config), pool), configured(trial)
    if number is None or number >= len(scripts):
        raise InvalidInput(f"{settings.config} no longer has trial {number}.")
    _compare(trial.files, {f"{NUMBER}{number}": digest(scripts[number], pool)})
    return scripts[number]


def configured(trial: Trial) -> int | None:
    """Return the number of a trial in its configuration; None if it has no configuration."""
    return next((int(name.removeprefix(NUMBER)) for name in trial.files if name.startswith(NUMBER)), None)


def choose_trials(settings: BirdsSettings, scripts: list[EvaluationScript]) -> list[int]:
    """Return the numbers of the trials of a configuration that the settings choose."""
    numbers = _listed(Path(settings.trial_list)) if settings.trial_list else list(range(len(scripts)))
    if (beyond := max(numbers, default=0)) >= len(scripts):
        raise InvalidInput(
            f"{settings.trial_list} has trial {beyond}, but the last one is {len(scripts) - 1}: they count from 0 on."
        )
    if settings.trial:
        first, last = _range(settings.trial, len(scripts) - 1)
        numbers = [number for number in numbers if first <= number <= last]
    wanted = {"all": (True, False), "informed": (True,), "uninformed": (False,)}[settings.told]
    chosen = [number for number in numbers if scripts[number].informed in wanted]
    if not chosen:
        raise InvalidInput(f"The options choose none of the {len(scripts)} trials of {settings.config}.")
    return chosen


def script_phases(script: EvaluationScript) -> tuple[Phase, ...]:
    """Return the phases of a configured trial, each with the novelties of its levels; one without tests has no test."""
    tests = [name for levels in script.tests for name in levels.levels]
    trained, tested = _novelties(script.training.levels), _novelties(tests)
    both = (*trained, *(name for name in tested if name not in trained)) if trained else ()
    # the first phase with a novelty names the trial
    training = Phase("training", novelty=both)
    return (training, Phase("test", novelty=tested)) if tests else (training,)


def read_scripts(settings: BirdsSettings, pool: LevelPool, seed: int) -> tuple[Path, dict[int, EvaluationScript]]:
    """Return the path of the list of trials behind a configuration, and the chosen scripts by number."""
    path = Path(settings.config)
    if not any(map(os.path.isfile, (path, path / CONFIG_NAME, path / META_NAME))):
        raise InvalidInput(
            f"There is no configuration at {path}. --config takes a {CONFIG_NAME}, a {META_NAME}, or a folder with one."
        )
    listed = find_config(path, pool, seed, settings.time_scope)
    scripts = read_config(listed, pool)
    chosen = {number: scripts[number] for number in choose_trials(settings, scripts)}
    if (total := sum(max(0, script.executions) for script in chosen.values())) > MAX_TRIALS:
        raise InvalidInput(
            f"{listed} asks for {total:,} trials, repetitions included; at most {MAX_TRIALS:,} are allowed."
        )
    check_levels(pool, (name for script in chosen.values() for name in script.names))
    return listed, chosen


def check_levels(pool: LevelPool, names: Iterable[str]) -> None:
    """Raise `InvalidInput` if a level cannot be played: now, not when its turn comes."""
    for name in dict.fromkeys(names):
        pool.level(name)


def refuse_endless(settings: BirdsSettings, seed: int) -> None:
    """Raise `InvalidInput` if a trial never ends, unless the settings allow it."""
    if settings.endless:
        return
    if not settings.config and settings.attempts <= 0:
        raise InvalidInput("Trials with attempts=0 never end. Set a number of attempts, or add --set endless=true.")
    scripts = read_scripts(settings, open_pool(settings), seed)[1] if settings.config else {}
    for number, script in scripts.items():
        sets = [("its training set", script.training), *(("a test set", levels) for levels in script.tests)]
        if name := next((name for name, levels in sets if levels.endless), ""):
            raise InvalidInput(
                f"Trial {number} of {settings.config} never ends: {name} has no limit of time, interactions or "
                "attempts. Give it one, or add --set endless=true."
            )


def draw_script(
    trial: Trial, settings: BirdsSettings, pool: LevelPool, moments: Sequence[LevelMoment]
) -> EvaluationScript:
    """Draw the levels of every phase of a trial by its seed, and mark them with their changes."""
    names = candidates(settings, pool)
    rng = random.Random(derive(trial.seed, "levels"))
    training: list[str] = []
    test: list[str] = []
    one_draw = _draw(names, trial.test_length, random.Random(derive(trial.seed, "test levels")))
    for phase in trial.phases:
        together = trial.scenario is not None and phase.name == "test"  # twins meet the same levels
        drawn = one_draw[len(test) :][: phase.episodes] if together else _draw(names, phase.episodes, rng)
        coming = moments[len(training) + len(test) :]
        marks = [mark_changes(settings, moment.settings) for moment in coming[: len(drawn)]]
        marked = [f"{name}#{mark}" if mark else name for name, mark in zip(drawn, marks, strict=True)]
        (training if phase.name == "training" else test).extend(marked)
    return EvaluationScript(
        training=LevelSet(levels=tuple(training), attempts=settings.attempts),
        tests=(LevelSet(levels=tuple(test), attempts=settings.attempts),) if test else (),
        report_step=settings.report_step,
        report_in_training=True,
        report_in_testing=True,
    )


def level_files(settings: BirdsSettings, pool: LevelPool) -> dict[str, str]:
    """Return a digest of all levels that a trial may draw from; it does not depend on the seed."""
    contents = b"".join(pool.content(name) for name in candidates(settings, pool)) + pool.rules
    return {"levels": file_digest(contents)}


def digest(script: EvaluationScript, pool: LevelPool) -> str:
    """Return a digest of a script and the content of all its levels."""
    contents = [file_digest(content) for content in (*map(pool.content, script.names), pool.rules) if content]
    return file_digest(msgspec.json.encode((script, contents)))


def _novelties(names: Iterable[str]) -> tuple[str, ...]:
    """Return the novelties of the novel levels, or their folders, as `novelty_level_2/type6`, in natural order."""
    return tuple(sorted({novelty_of(name) for name in names if is_novel(name)}, key=natural_key))


def _range(text: str, most: int) -> tuple[int, int]:
    """Return the first and the last number of a range, in either order; the first one must exist."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", text)
    if not found:
        raise InvalidInput(f"--trial must be a number from 0 on, or a range such as 2-5, not '{text}'.")
    first, last = sorted((int(found[1]), int(found[2] or found[1])))
    if first > most:
        raise InvalidInput(f"--trial {text} is beyond the last trial, {most}: trials are counted from 0 on.")
    return first, last


def _listed(path: Path) -> list[int]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    for line in lines:
        if not re.fullmatch(r"\d{1,9}", line):
            raise InvalidInput(f"{path} has '{line}' where a trial number is expected.")
    return [int(line) for line in lines]


def candidates(settings: BirdsSettings, pool: LevelPool) -> list[str]:
    """Return the normal levels of the family and the scenario."""
    scenarios = get_args(Scenario)  # "all", then each by its published number
    number = scenarios.index(settings.scenario)
    numbers = [number] if number else range(1, len(scenarios))
    return [name for number in numbers for name in pool.names(0, f"01{settings.family or 1:02d}{number:02d}")]


def _draw(names: list[str], count: int, rng: random.Random) -> list[str]:
    """Draw some levels; none comes twice before all have come once."""
    drawn: list[str] = []
    while len(drawn) < count:
        drawn += rng.sample(names, min(len(names), count - len(drawn)))
    return drawn


def _compare(known: dict[str, str], found: dict[str, str]) -> None:
    if known != found:
        raise InvalidInput("The levels of this trial, or their order, have changed since it was made.")
