"""Recorded episodes as moving pictures: the record is replayed on an engine that draws for people.

Stands behind the record: journal -> replay -> pictures. `python -m openfield.domains.doom.view RUN CELL EPISODE FILE`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openfield.core import Reply, Turn
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.world import DoomWorld
from openfield.errors import InvalidInput, MissingExtra, OpenfieldError, ReplayMismatch
from openfield.record import ENCODER
from openfield.registry import find_domain
from openfield.view import CellRecord, Run

MILLISECONDS = 40
"""Per picture; GIF viewers slow down below 20."""


def write_gif(run: Path, cell: str, episode: int, target: Path, every: int = 2) -> int:
    """Writes an episode as an animated GIF and returns how many pictures it has.

    Args:
        run: The run file.
        cell: A cell's id, or how it begins.
        episode: The episode's number within the cell, from 0.
        target: The file to write.
        every: One picture for so many ticks.
    """
    pictures = [_image(array) for array in list(episode_pictures(run, cell, episode))[::every]]
    if not pictures:
        raise InvalidInput(f"Episode {episode} of cell {cell} has no picture.")
    pictures[0].save(target, save_all=True, append_images=pictures[1:], duration=MILLISECONDS, loop=0)
    return len(pictures)


def episode_pictures(run: Path, cell: str, episode: int) -> Iterator[Any]:
    """What the player saw at every tick of a recorded episode, as arrays."""
    with Run(run) as opened:
        record = opened.cell(cell)
        if not 0 <= episode < max(len(record.episodes), 1):
            raise InvalidInput(f"Cell {record.id} has episodes 0 to {len(record.episodes) - 1}.")
        replies = [(step.reply, step.turn) for step in opened.raw_steps(record.id, record.attempt)]
    world = _large_world(record)
    try:
        number = -1
        for reply, recorded in replies:
            turn = _repeat(world, reply)
            if turn is None:
                return
            if ENCODER.encode(turn) != bytes(recorded):
                raise ReplayMismatch(f"Cell {record.id}: the replay differs from the record.")
            number += turn.first
            if number == episode and turn.last is None:
                yield world.look("picture")
            elif number > episode:
                return
    finally:
        world.close()


def _repeat(world: DoomWorld, reply: Reply | None) -> Turn | None:
    """The turn a recorded reply leads to; None after the last one."""
    if reply is None:
        return world.reset()
    if world.truth.episode_over and world.over:
        return None
    return world.step(reply)


def _large_world(record: CellRecord) -> DoomWorld:
    domain = find_domain(record.trial.domain)
    if not isinstance(domain, DoomDomain):
        raise InvalidInput(f"Cell {record.id} is of {domain.name}; only Doom has pictures.")
    return DoomWorld(domain, record.trial, large=True)


def _image(array: Any) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("doom", "Pictures") from None
    return Image.fromarray(array)


def main(words: list[str]) -> int:
    """The command: RUN CELL EPISODE FILE."""
    try:
        run, cell, episode, target = words
        count = write_gif(Path(run), cell, int(episode), Path(target))
    except ValueError:
        sys.stderr.write("python -m openfield.domains.doom.view RUN CELL EPISODE FILE.gif\n")
        return 2
    except OpenfieldError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    sys.stdout.write(f"{count} pictures in {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
