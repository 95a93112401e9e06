"""Read what a person met in a game of a study: from a run of `openfield play`, or from a table with thresholds.

Agents are compared with it by the thresholds of the person's own pictures, as in the paper.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.objectives.formats.convert import read_thresholds
from openfield.objectives.formats.load import is_parquet, load_table
from openfield.objectives.frames.encode import find_bins
from openfield.objectives.games.life_file import RECIPE, make_life_table
from openfield.objectives.games.plan import StudyGame
from openfield.objectives.runs.observations import Small
from openfield.objectives.runs.recordings import Reading, Recording, read_human
from openfield.objectives.tables.rows import Array, Rows
from openfield.objectives.tables.table import Table


class PersonsPlay(NamedTuple):
    """What a person met in a game, and the thresholds of the levels it is compared by."""

    table: Table
    bins: Array
    source: str
    """The file, as the study names it."""

    @property
    def description(self) -> str:
        """What it is, for the page of the study."""
        return f"{self.source}, {int(self.table.counts.total):,} transitions"


def read_person(game: StudyGame, base: Path) -> PersonsPlay:
    """Read what a person met in a game.

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
    pictures = [key for key in seen if isinstance(key, Small)]
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
