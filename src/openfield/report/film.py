"""Write a recorded episode as an animated picture: the record is played again in a world that draws.

The record holds no pictures. A film shows what happened because every turn of the replay is compared with the recorded
one.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from openfield.capabilities import Film, make_film
from openfield.errors import InvalidInput
from openfield.extras import import_extra
from openfield.files.atomic import replacing
from openfield.journal.reader import CellRecord, Run
from openfield.journal.trust import trusted_domain
from openfield.record import RawStep
from openfield.rollout import Rollout

MAX_PICTURES = 1_000
LAST_MILLISECONDS = 1_500


def write_film(run: Run, cell: CellRecord, episode: int, output: Path, trust: bool = False) -> int:
    """Write an episode as an animated GIF, and return how many pictures it has.

    Args:
        run: The run file.
        cell: The cell.
        episode: The number of the episode.
        output: The file to write.
        trust: Run a domain that the run file names even if this user did not sign it.
    """
    if not 0 <= episode < len(cell.episodes):
        have = f"episodes 0 to {len(cell.episodes) - 1}" if cell.episodes else "no finished episode"
        raise InvalidInput(f"Cell {cell.id} has no episode {episode}; it has {have}.")
    film = make_film(trusted_domain(run, cell.trial.domain, trust), cell.trial)
    try:
        taken = replay_pictures(film, run.raw_steps(cell.id, cell.attempt), episode)
        pictures = [_image(array) for array in itertools.islice(taken, MAX_PICTURES)]
    finally:
        film.world.close()
    if not pictures:
        raise InvalidInput(f"Episode {episode} of cell {cell.id} has no picture.")
    times = [film.milliseconds] * (len(pictures) - 1) + [LAST_MILLISECONDS]
    data = io.BytesIO()
    pictures[0].save(data, "GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)
    with replacing(output) as draft:
        draft.write_bytes(data.getvalue())
    return len(pictures)


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


def _image(array: Any) -> Any:
    """Return a picture in the few colours of a GIF, a third of its size in memory."""
    image = import_extra("PIL.Image", "birds", "A film")
    return image.fromarray(array).quantize(method=image.Quantize.FASTOCTREE)
