"""`openfield objectives convert` and `frames`: tables in another form, and tables from a user's own episodes.

Commands of `openfield objectives`; heavy imports wait until a command needs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from openfield.errors import InvalidInput
from openfield.options import Whole


def convert(source: Path, target: Path, /) -> None:
    """Turn a published pickle into sorted Parquet, or back; works for tables larger than memory.

    Args:
        source: A table.
        target: Where to write it; `.parquet` or `.pkl` decides the form.

    Example:
        openfield objectives convert agent.pkl agent.parquet
    """
    from openfield.objectives.formats.convert import convert as run

    done = run(source, target)
    print(f"{target}: {done.rows:,} rows, {target.stat().st_size:,} bytes")
    for note in done.notes:
        print(f"note: {note}")


def frames(
    *episodes: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"), metavar="FILE")],
    thresholds: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    size: Whole | None = None,
    levels: Whole | None = None,
    alignment: Annotated[
        Literal["action_leads_to_next", "action_led_here"], Parameter(metavar="WHICH")
    ] = "action_leads_to_next",
) -> None:
    """Make a table from episodes: NPZ files with frames and actions, or folders of images.

    Args:
        episodes: One file or folder per episode.
        output: The table to write, `.parquet` or `.pkl`.
        thresholds: A table made by this command, whose thresholds are used; needed to compare agents.
        size: The height and width that frames are scaled down to [8, or that of the thresholds].
        levels: Levels per pixel [4, or those of the thresholds].
        alignment: Whether an action was chosen on its frame, or led to it [action_leads_to_next].

    Example:
        openfield objectives frames episodes/*.npz -o agent.parquet
    """
    from openfield.objectives.formats.convert import check_target, read_thresholds
    from openfield.objectives.frames.table_of_episodes import Recipe
    from openfield.objectives.frames.table_of_files import write_episodes

    if not episodes:
        raise InvalidInput("Name at least one episode: openfield objectives frames EPISODE.npz -o table.parquet")
    check_target(output)
    bins = read_thresholds(thresholds) if thresholds else None
    high, deep = (8, 4) if bins is None else (len(bins), bins.shape[2] + 1)
    if bins is not None and (size or high, levels or deep) != (high, deep):
        raise InvalidInput(f"{thresholds}: its thresholds are for size {high} and {deep} levels.")
    recipe = Recipe(size=high if size is None else size, levels=deep if levels is None else levels, alignment=alignment)
    made = write_episodes(episodes, recipe, output, bins)
    print(f"{output}: {made.rows:,} distinct transitions of {made.transitions:,}, {made.inputs:,} inputs")
