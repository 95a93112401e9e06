"""Write a recorded episode as an animated picture: the record is played again in a world that draws.

The record holds no pictures. A film shows what happened because every turn of the replay is compared with the recorded
one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from openfield.capabilities import Film, make_film
from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.journal.reader import CellRecord, Run
from openfield.journal.trust import trusted_domain
from openfield.lazy import import_extra
from openfield.record import RawStep
from openfield.report.webp import write_webp
from openfield.rollout import Rollout

MAX_PICTURES = {".gif": 1_000, ".webp": 10_000}
"""Pictures of a film in each format. A GIF is made in memory, a WebP picture by picture."""
LAST_MILLISECONDS = 1_500
GIF_UNIT = 10
"""Milliseconds that a GIF counts in."""


def write_film(run: Run, cell: CellRecord, episode: int, output: Path, trust: bool = False) -> int:
    """Write an episode as an animated GIF or WebP, and return how many pictures it has.

    Args:
        run: The run file.
        cell: The cell.
        episode: The number of the episode.
        output: The file to write; its name ends in `.gif` or `.webp`. WebP is several times smaller.
        trust: Run a domain that the run file names even if this user did not sign it.
    """
    kind = output.suffix.lower() or ".gif"  # a pipe has no ending
    if kind not in MAX_PICTURES:
        raise InvalidInput(f"{output}: the name of a film ends in .webp (smaller) or .gif.")
    if not 0 <= episode < len(cell.episodes):
        have = f"episodes 0 to {len(cell.episodes) - 1}" if cell.episodes else "no finished episode"
        raise InvalidInput(f"Cell {cell.id} has no episode {episode}; it has {have}.")
    film = make_film(trusted_domain(run, cell.trial.domain, trust), cell.trial)
    try:
        taken = replay_pictures(film, run.raw_steps(cell.id, cell.attempt), episode)
        pictures = itertools.islice(taken, MAX_PICTURES[kind])
        with replacing(output) as draft:
            count = save_film(pictures, draft, film.milliseconds, kind)
            if not count:
                raise InvalidInput(f"Episode {episode} of cell {cell.id} has no picture.")
    finally:
        film.world.close()
    return count


def save_film(pictures: Iterable[Any], path: Path, milliseconds: float, kind: str = ".webp") -> int:
    """Write pictures to a file, each shown for some milliseconds and the last one longer, and return their number."""
    image = import_extra("PIL.Image", "birds", "A film")
    if kind == ".webp":
        return write_webp((image.fromarray(array) for array in pictures), path, milliseconds, LAST_MILLISECONDS)
    made = [image.fromarray(array).quantize(method=image.Quantize.FASTOCTREE) for array in pictures]
    if made:
        ends = [round(number * milliseconds / GIF_UNIT) * GIF_UNIT for number in range(len(made))]
        times = [after - before for before, after in itertools.pairwise(ends)] + [LAST_MILLISECONDS]
        made[0].save(path, "GIF", save_all=True, append_images=made[1:], duration=times, loop=0)
    return len(made)


def replay_pictures(film: Film, steps: Iterable[RawStep], episode: int) -> Iterator[Any]:
    """Yield the pictures of an episode while its trial is played again, with the recorded replies."""
    past, replies = itertools.tee(steps)
    rollout = Rollout.resume(film.world, past, known=1)
    next(replies)  # it led to the first turn, without a reply
    shown, number = None, 0
    for reply in itertools.chain((step.reply for step in replies), [None]):
        if rollout.turn is not shown:
            shown = rollout.turn
            if number == episode:
                yield from film.pictures()
            number += shown.last is not None or film.world.truth.episode_over
        if reply is None or rollout.over or number > episode:
            return
        rollout.reply(reply)
