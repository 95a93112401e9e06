"""A recorded level as an animated picture: the level is played again, shot by shot, and drawn.

Stands after the journal, beside report. The film shows what happened, not what was stored: the record has no pictures.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from openfield.core import Ask, Reply
from openfield.domains.birds.camera import zoomed_out
from openfield.domains.birds.drawing import draw
from openfield.domains.birds.game import Game
from openfield.domains.birds.scene import see
from openfield.domains.birds.world import BirdsWorld
from openfield.errors import InvalidInput
from openfield.record import Step
from openfield.registry import find_domain
from openfield.report.files import replacing
from openfield.view import CellRecord, Run

if TYPE_CHECKING:
    from PIL.Image import Image

EVERY = 5
"""Steps of the engine between two pictures: ten a second."""
MILLISECONDS = 100
LAST_MILLISECONDS = 1500
SIZE = (480, 360)
MOST_PICTURES = 600


def write_film(run: Path, output: Path, cell: str | None = None, episode: int | None = None) -> str:
    """Writes a level as a GIF; says what was written."""
    with Run(run) as opened:
        found = opened.cell(cell) if cell else opened.cells()[0]
        steps = list(opened.steps(found.id, found.attempt))
    wanted = episode or 0
    if not 0 <= wanted < len(found.episodes):
        raise InvalidInput(f"Cell {found.id} has episodes 0 to {len(found.episodes) - 1}, not {wanted}.")
    pictures = film(found, steps, wanted)
    data = io.BytesIO()
    times = [MILLISECONDS] * (len(pictures) - 1) + [LAST_MILLISECONDS]
    pictures[0].save(data, "GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)
    with replacing(output) as draft:
        draft.write_bytes(data.getvalue())
    return f"{len(pictures)} pictures of level {found.episodes[wanted].detail['level']} in {output}"


def film(cell: CellRecord, steps: list[Step], episode: int) -> list[Image]:
    """The pictures of an episode, made by playing the trial again up to its end."""
    world = find_domain("birds").world(cell.trial)
    if not isinstance(world, BirdsWorld):
        raise InvalidInput(f"Cell {cell.id} is no trial of birds.")
    pictures: list[Image] = []
    turn, number = world.reset(), 0
    for step in steps[1:]:
        number += turn.last is not None
        if step.reply is None or number > episode or (turn.last is not None and world.over):
            break
        if turn.ask is Ask.ACT and step.reply.action is None:
            continue
        if number == episode and turn.ask is Ask.ACT and world.arena is not None:
            _point_camera(world.arena.game, pictures)
        turn = world.step(Reply(step.reply.action, step.reply.belief, step.took / 1e9))
    return pictures


def _point_camera(game: Game, pictures: list[Image]) -> None:
    """Has pictures taken from now on, the first at once."""
    view = zoomed_out(game.level.camera)

    def take() -> None:
        if len(pictures) < MOST_PICTURES:
            pictures.append(draw(see(game, view)).resize(SIZE))

    take()
    game.watch(EVERY, take)
