"""Run a study on live games: play all lives, find the thresholds of each game, measure, and correlate.

Lives are played in worker processes and kept in files; everything else takes seconds and is computed anew.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.metrics.stats import t_quantile
from openfield.objectives.evaluation import NAMES, evaluate
from openfield.objectives.formats.convert import read_thresholds
from openfield.objectives.formats.load import is_parquet, load_table
from openfield.objectives.frames.encode import encode_frames, find_bins, index_words
from openfield.objectives.frames.table_of_episodes import PixelValues
from openfield.objectives.games.life_file import (
    RECIPE,
    LifeRecord,
    make_life_table,
    make_study_env,
    play_life,
    read_life,
)
from openfield.objectives.games.plan import GamePlan, LifeSizes, LifeTask, StudyGame, list_lives
from openfield.objectives.measures.excess import EmpowermentEstimate, describe_saturation, estimate_empowerment
from openfield.objectives.measures.similarity import compare
from openfield.objectives.pool import run_in_pool
from openfield.objectives.runs.observations import SmallPicture
from openfield.objectives.runs.recordings import Reading, Recording, read_human
from openfield.objectives.study.study import REWARD, SIMILARITY, Study, StudyRow, correlate_rows
from openfield.objectives.tables.codes import rank
from openfield.objectives.tables.rows import Array, Rows
from openfield.objectives.tables.table import Table

PER = 1000
"""Steps that a reward is given for."""


class MeasuredLife(NamedTuple):
    """The values of one life."""

    values: dict[str, float]
    empowerment: EmpowermentEstimate
    distinct: dict[str, int]
    transitions: int
    saturation: str
    jsd_nats: float | None


def run_games(
    plan: GamePlan,
    sizes: LifeSizes,
    folder: Path,
    *,
    base: Path,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
    draws: int = 1000,
) -> Study:
    """Play all lives that are not in the folder, and measure all.

    Args:
        plan: The study.
        sizes: How long lives are, and how many.
        folder: Where lives are kept; a study that was stopped goes on from it.
        base: The folder that paths in the plan start from.
        workers: Processes that play; 0 plays in this one.
        progress: Called with the number of lives played and of all.
        draws: Of bootstrap and permutations of correlations.

    Raises:
        InvalidInput: An environment cannot be made, or nothing can be written to the folder.
    """
    for game in plan.games:
        make_study_env(game).close()
    people = {game.name: read_person(game, base) for game in plan.games if game.human}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be written ({error.strerror or error}).") from None
    tasks = list_lives(plan, sizes, folder)
    problems = {task.path: problem for task, problem in _play_missing(tasks, workers, progress)}
    rows: list[StudyRow] = []
    for game in plan.games:
        mine = [task for task in tasks if task.game == game]
        rows += _rows_of_game(game, plan.agents, mine, problems, people.get(game.name))
    facts = {"steps of each life": f"{sizes.steps:,}", "seeds": str(sizes.seeds), "agents": str(len(plan.agents))}
    facts |= {f"person in {name}": person.description for name, person in people.items()}
    return Study(rows=rows, correlations=correlate_rows(rows, draws), facts=facts)


def _play_missing(
    tasks: Sequence[LifeTask], workers: int, progress: Callable[[int, int], None] | None
) -> Iterator[tuple[LifeTask, str]]:
    """Play the lives that have no file. Yield those that failed, with the reason."""
    waiting = [task for task in tasks if read_life(task.path) is None]
    done = len(tasks) - len(waiting)
    if progress is not None:
        progress(done, len(tasks))
    for task, problem in _run_missing(waiting, workers):
        done += 1
        if progress is not None:
            progress(done, len(tasks))
        if problem:
            yield task, problem


def _run_missing(tasks: Sequence[LifeTask], workers: int) -> Iterator[tuple[LifeTask, str]]:
    if workers <= 0 or not tasks:
        yield from ((task, play_life(task)) for task in tasks)
        return
    left = dict.fromkeys(task.path for task in tasks)
    try:
        for task, problem in run_in_pool(play_life, tasks, workers):
            left.pop(task.path)
            yield task, problem
    except BrokenProcessPool:
        yield from ((task, "the process that played it died") for task in tasks if task.path in left)


def _rows_of_game(
    game: StudyGame,
    agents: Sequence[str],
    tasks: Sequence[LifeTask],
    problems: Mapping[Path, str],
    person: PersonsPlay | None,
) -> Iterator[StudyRow]:
    played = [task for task in tasks if read_life(task.path) is not None]
    bins = find_life_thresholds(_lives(played))
    seen = 0 if bins is None else count_life_inputs(_lives(played), bins)
    for agent in agents:
        mine = [task for task in tasks if task.agent == agent]
        wrong = tuple(f"seed {task.seed}: {problems[task.path]}" for task in mine if task.path in problems)
        lives = [] if bins is None else [measure(life, bins, seen, person) for life in _lives(mine)]
        yield _row(game, agent, lives, wrong)


def _lives(tasks: Iterable[LifeTask]) -> Iterator[LifeRecord]:
    """Read lives one at a time: all of a game together may not fit into memory."""
    return (life for task in tasks if (life := read_life(task.path)) is not None)


def find_life_thresholds(lives: Iterable[LifeRecord]) -> Array | None:
    """Find the thresholds of all frames of all lives together, or None without frames."""
    with PixelValues(RECIPE.size**2) as pixels:
        for life in lives:
            pixels.add(life.frames.reshape(len(life.frames), -1))
        found = pixels.thresholds(RECIPE.levels)
    return None if found is None else found.reshape(RECIPE.size, RECIPE.size, RECIPE.levels - 1)


def count_life_inputs(lives: Iterable[LifeRecord], bins: Array) -> int:
    """Count the distinct inputs of all lives together."""
    words = np.concatenate([index_words(encode_frames(life.frames, bins))[1] for life in lives])
    return rank(words)[1]


def measure(life: LifeRecord, bins: Array, num_obs: int, person: PersonsPlay | None) -> MeasuredLife:
    """Compute the values of one life."""
    table = make_life_table(life.frames, life.rows, bins)
    found = evaluate(table, num_obs=num_obs)
    values = {name: value for name, value in found.values.items() if value is not None}
    values[REWARD] = float(life.rewards.sum()) * PER / len(life.rewards)
    divergence = None
    if person is not None:
        alike = compare(person.table, make_life_table(life.frames, life.rows, person.bins))
        divergence = alike.jsd_nats
        values |= {} if alike.jaccard is None else {SIMILARITY: alike.jaccard}
    empowerment = estimate_empowerment(table.columns, table.counts)
    saturation = describe_saturation(table.counts)
    return MeasuredLife(values, empowerment, found.distinct, len(life.rewards), saturation, divergence)


def _row(game: StudyGame, agent: str, lives: Sequence[MeasuredLife], problems: tuple[str, ...]) -> StudyRow:
    names = (*NAMES, REWARD, SIMILARITY)
    columns = {name: [life.values[name] for life in lives if name in life.values] for name in names}
    known = [life.jsd_nats for life in lives if life.jsd_nats is not None]
    return StudyRow(
        environment=game.name,
        agent=agent,
        values={name: _mean(column) for name, column in columns.items()},
        intervals={name: _interval(column) for name, column in columns.items() if len(column) > 1},
        seeds=len(lives),
        lives=[life.values for life in lives],
        jsd_nats=_mean(known),
        transitions=lives[0].transitions if lives else None,
        distinct={name: round(_mean([life.distinct[name] for life in lives]) or 0) for name in lives[0].distinct}
        if lives
        else {},
        empowerment=_mean_estimate([life.empowerment for life in lives]),
        saturation=next((life.saturation for life in lives if life.saturation), ""),
        problems=problems,
        reasons={} if columns[SIMILARITY] or problems or game.human else {SIMILARITY: _explain_no_person(game)},
    )


def _explain_no_person(game: StudyGame) -> str:
    file = f"{game.name}_human.sqlite"
    return f'needs a person\'s play: {write_play_command(game)} -o {file}, then human = "{file}" in the study'


def _mean(column: Sequence[float]) -> float | None:
    return math.fsum(column) / len(column) if column else None


def _interval(column: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean over seeds, by Student's t."""
    mean, size = math.fsum(column) / len(column), len(column)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in column) / (size - 1) / size)
    return mean - t_quantile(size - 1) * spread, mean + t_quantile(size - 1) * spread


def _mean_estimate(found: Sequence[EmpowermentEstimate]) -> EmpowermentEstimate | None:
    """Return the mean of estimates over lives, with the widest band and the highest p."""
    if not found or any(each.null is None or each.band is None or each.p is None for each in found):
        return None
    known = [each.excess for each in found if each.excess is not None]
    bands = [each.band for each in found if each.band is not None]
    return EmpowermentEstimate(
        value=_mean([each.value for each in found]) or 0.0,
        null=_mean([each.null or 0.0 for each in found]),
        band=(min(low for low, _ in bands), max(high for _, high in bands)),
        p=max(each.p or 0.0 for each in found),
        excess=_mean(known) if len(known) == len(found) else None,
        reason=next((each.reason for each in found if each.reason), ""),
        visits=_mean([each.visits for each in found]) or 0.0,
        draws=found[0].draws,
    )


class PersonsPlay(NamedTuple):
    """The frames a person met in a game, and the thresholds of the levels they are compared by."""

    table: Table
    bins: Array
    source: str
    """The file, as the study names it."""

    @property
    def description(self) -> str:
        """Its description, for the page of the study."""
        return f"{self.source}, {int(self.table.counts.total):,} transitions"


def read_person(game: StudyGame, base: Path) -> PersonsPlay:
    """Read the frames a person met in a game.

    Args:
        game: The game, which names the file.
        base: The folder that its path starts from.

    Raises:
        InvalidInput: The file has no pictures or no thresholds, or another environment was played.
    """
    path = base / str(game.human)
    if path.suffix in (".pkl", ".pickle") or (path.is_file() and is_parquet(path)):
        bins = read_thresholds(path)
        if bins.shape != (RECIPE.size, RECIPE.size, RECIPE.levels - 1):
            raise InvalidInput(
                f"{path}: its thresholds are of {bins.shape}; a study needs {RECIPE.size} x {RECIPE.size}."
            )
        return PersonsPlay(load_table(path), bins, str(game.human))
    _check_environment(path, game)
    frames, rows = _read_pictures(read_human(path, Reading(agent=game.human_agent, size=RECIPE.size)))
    bins = find_bins(frames, RECIPE.levels)
    return PersonsPlay(make_life_table(frames, rows, bins), bins, str(game.human))


def write_play_command(game: StudyGame) -> str:
    """Return the command with which a person plays a game as its agents do."""
    values = {
        key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in game.make.items()
    }
    settings = [word for key, value in values.items() for word in ("--set", f"make.{key}={value}")]
    return shlex.join(["openfield", "play", f"gym:{game.environment}", "--novelty", "none", *settings])


def _check_environment(path: Path, game: StudyGame) -> None:
    """Check that a run is of the environment of a game, made with the same arguments: else its pictures differ."""
    with Run(path) as run:
        played = [(trial.domain, trial.settings.get("make", {})) for trial in run.trials()]
    name = game.environment.rpartition(":")[2].replace("/", "-")
    for domain, arguments in played:
        is_game = domain.startswith("gym-") and domain.endswith(f"-{name}") and domain == played[0][0]
        if not is_game or arguments != game.make:
            made = f" with {json.dumps(arguments)}" if arguments else ""
            raise InvalidInput(
                f"{path}: a person played {domain}{made}, which is not the game '{game.name}' as the study makes it. "
                f"Play it with: {write_play_command(game)} -o FILE"
            )


def _read_pictures(found: Recording) -> tuple[Array, Rows]:
    """Return the small pictures of a recording that were met before any change of the world, and the transitions."""
    (seen,) = found.inputs.values()
    pictures = [key for key in seen if isinstance(key, SmallPicture)]
    if len(pictures) < len(seen):
        raise InvalidInput(f"{found.path}: the person was shown no pictures, so there is nothing to compare with.")
    usual = [episode for group, each in found.groups.items() if group.stage != "after" for episode in each]
    if not usual:
        raise InvalidInput(f"{found.path}: the person played only a world that had changed. Play with --novelty none.")
    rows = Rows(*(np.concatenate(columns) for columns in zip(*usual, strict=True)))
    frames = np.frombuffer(b"".join(pictures), np.float64).reshape(-1, found.size, found.size)
    met, places = np.unique(np.concatenate((rows.obs, rows.next_obs)), return_inverse=True)
    obs, following = np.split(places, 2)
    return frames[met], rows._replace(obs=obs, next_obs=following)
