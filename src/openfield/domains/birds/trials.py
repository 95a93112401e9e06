"""Trials of birds: from configuration files, or drawn from the pool with an onset.

Stands between settings and worlds: settings and seed -> script. A trial carries a digest of its script and levels, so
that a world is never played on other files than the trial was made of.
"""

from __future__ import annotations

import random
from pathlib import Path

from openfield.domains.birds.config import read_config
from openfield.domains.birds.generation import CONFIG_NAME, find_config
from openfield.domains.birds.novelty import NOVELTIES, family_of
from openfield.domains.birds.pool import LevelPool
from openfield.domains.birds.scenarios import SCENARIOS
from openfield.domains.birds.script import LevelSet, Script
from openfield.domains.birds.settings import BirdsSettings
from openfield.errors import InvalidInput
from openfield.novelty import apply_novelties
from openfield.trial import Trial, derive, file_digest

NUMBER = "trial "
"""Begins the key under which `Trial.files` has which trial of a configuration it is, and the digest of all it needs."""


def open_pool(settings: BirdsSettings) -> LevelPool:
    """The folder of levels; beside a configuration its own comes first."""
    if settings.levels:
        return LevelPool(Path(settings.levels))
    if settings.config:
        path = Path(settings.config)
        beside = (path if path.is_dir() else path.parent) / "Levels"
        if beside.is_dir():
            return LevelPool(beside)
    return LevelPool()


def list_scripts(settings: BirdsSettings, pool: LevelPool, seed: int) -> tuple[list[Script], str]:
    """The trials of a configuration, drawn first where that is due, and the file that lists them."""
    path = Path(settings.config)
    scripts = find_config(path, pool, seed, settings.time_scope)
    folder = path if path.is_dir() else path.parent
    listed = path if path.is_file() and path.name != "configMeta.xml" else folder / CONFIG_NAME
    return scripts, str(listed)


def script_of(trial: Trial, settings: BirdsSettings, pool: LevelPool) -> Script:
    """The script of a trial; refused if its files are no longer what they were."""
    key = next((name for name in trial.files if name.startswith(NUMBER)), None)
    if settings.config and key is not None:
        scripts, number = read_config(Path(settings.config), pool), int(key.removeprefix(NUMBER))
        if number >= len(scripts):
            raise InvalidInput(f"{settings.config} no longer has trial {number}.")
        script = scripts[number]
    else:
        script = draw_script(trial, settings, pool)
    if key is not None and trial.files[key] != digest(script, pool):
        raise InvalidInput("The levels of this trial, or their order, have changed since it was made.")
    return script


def draw_script(trial: Trial, settings: BirdsSettings, pool: LevelPool) -> Script:
    """Levels for every phase of a trial, drawn by its seed; the novelty's family says from which templates."""
    family = family_of(apply_novelties(NOVELTIES, trial.novelty, settings).changes) or 1
    rng = random.Random(derive(trial.seed, "levels"))
    training: list[str] = []
    test: list[str] = []
    for phase in trial.phases:
        changes = apply_novelties(NOVELTIES, phase.novelty, settings).changes
        names = _draw(pool, family, settings.scenario, phase.episodes, rng)
        marked = [f"{name}#{'+'.join(changes)}" if changes else name for name in names]
        (training if phase.name == "training" else test).extend(marked)
    return Script(
        training=LevelSet(levels=tuple(training), attempts=settings.attempts),
        tests=(LevelSet(levels=tuple(test), attempts=settings.attempts),) if test else (),
        report_step=settings.report_step,
        report_in_training=True,
        report_in_testing=True,
    )


def digest(script: Script, pool: LevelPool) -> str:
    """What stands for a script and the content of all its levels."""
    names = [name for levels in (script.training, *script.tests) for name in levels.levels]
    contents = {name: file_digest(pool.content(name.partition("#")[0])) for name in names}
    return file_digest(repr((script, [contents[name] for name in names])).encode())


def _draw(pool: LevelPool, family: int, scenario: str, count: int, rng: random.Random) -> list[str]:
    """Levels of the wanted scenarios in turn, none twice before all were there."""
    order = list(SCENARIOS)
    numbers = range(1, len(order) + 1) if scenario == "all" else [order.index(scenario) + 1]
    names = [name for number in numbers for name in pool.names(0, f"01{family:02d}{number:02d}")]
    drawn: list[str] = []
    while len(drawn) < count:
        drawn += rng.sample(names, min(len(names), count - len(drawn)))
    return drawn
