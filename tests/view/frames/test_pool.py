"""Workers that make pictures: they may hang, crash, print and want all memory, and cost a message."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

import openfield as of
from openfield.journal.reader import CellRecord, Run
from openfield.view.frames import EpisodeOrder, FramePool, WarmOrder
from openfield.view.frames.messages import TurnPicture
from openfield.view.frames.pool import MAX_FILMS
from support.places import SUPPORT

T = TypeVar("T")
SOURCE = f"{SUPPORT / 'filmed_maze.py'}:domain"


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CellRecord]:
    """A recorded trial of a maze that draws."""
    path = tmp_path_factory.mktemp("runs") / "maze.sqlite"
    trials = of.trials(SOURCE, count=1, training=0, before=2, after=2, unchanged=0, patience=6)
    of.run(lambda turn: of.Reply("left"), trials, path, workers=0)
    with Run(path) as run:
        return path, run.cells()[0]


def order(cell: tuple[Path, CellRecord], episode: int = 1, trust: bool = True, film: str = "") -> EpisodeOrder:
    """Return the order for the pictures of an episode."""
    return EpisodeOrder(str(cell[0]), cell[1].id, cell[1].attempt, episode, trust=trust, film=film)


def use(work: Callable[[FramePool], Awaitable[T]], patience: float = 60.0, film: str = "", workers: int = 1) -> T:
    """Do something with a pool whose domain misbehaves in some way."""

    async def main() -> T:
        environment = {**os.environ, "OPENFIELD_TEST_FILM": film}
        pool = FramePool(workers, patience, environment=environment)
        try:
            return await work(pool)
        finally:
            await pool.close()

    with ThreadPoolExecutor(1) as thread:  # a browser that other tests use has a loop in this one
        return thread.submit(asyncio.run, main()).result()


async def follow(pool: FramePool, wanted: EpisodeOrder) -> tuple[list[TurnPicture], str]:
    """Return all pictures, and what was said of those that are missing."""
    reel = pool.open_reel(wanted)
    return [frame async for frame in reel.follow()], reel.message


def test_pictures_come_turn_by_turn_and_are_kept(cell: tuple[Path, CellRecord]) -> None:
    async def work(pool: FramePool) -> None:
        pool.warm(WarmOrder(str(cell[0]), cell[1].id, order(cell).trust))
        frames, message = await follow(pool, order(cell))
        first, count = cell[1].episodes[0].turns, cell[1].episodes[1].turns
        assert ([frame.turn for frame in frames], message) == (list(range(first, first + count)), "")
        assert all(frame.data.startswith(b"\x89PNG") for frame in frames)
        again = pool.open_reel(order(cell))
        assert (again.over, again.milliseconds) == (True, 40.0)
        seen = await pool.open_reel(order(cell)).picture_at(first + 2)
        assert seen is frames[2]
        (idle,) = pool._idle
        assert idle._module is not None
        idle._module.process.kill()  # whether the pool knows of it or not when the next order comes
        assert (await follow(pool, order(cell, 2)))[1] == ""

    use(work)


def test_a_film_is_written_to_a_file(cell: tuple[Path, CellRecord], tmp_path: Path) -> None:
    async def work(pool: FramePool) -> str:
        return (await follow(pool, order(cell, film=str(tmp_path / "x.webp"))))[1]

    assert use(work) == ""
    assert (tmp_path / "x.webp").read_bytes()[8:12] == b"WEBP"


@pytest.mark.parametrize(
    ("film", "said"),
    [
        ("crash", "has ended: the engine is broken"),
        ("raise", "no brush"),
        ("memory", "more than 6 GB of memory"),
    ],
)
def test_a_worker_that_fails_costs_a_message(cell: tuple[Path, CellRecord], film: str, said: str) -> None:
    async def work(pool: FramePool) -> None:
        for _ in range(2):  # the second order gets a worker again
            frames, message = await follow(pool, order(cell))
            assert (frames, said in message) == ([], True), message

    use(work, film=film)


def test_a_worker_that_hangs_is_ended(cell: tuple[Path, CellRecord]) -> None:
    async def work(pool: FramePool) -> None:
        reel = pool.open_reel(order(cell))
        await reel.wait_begun()
        (worker,) = pool._busy
        module = worker._module
        assert module is not None
        frames = [frame async for frame in reel.follow()]
        assert (frames, reel.message) == ([], "The replay did not answer for 0.05 s and was stopped.")
        assert module.process.wait() < 0

    use(work, film="hang", patience=0.05)


def test_an_order_that_is_left_gives_way_to_the_next(cell: tuple[Path, CellRecord]) -> None:
    """With one worker, which is stopped between two pictures."""

    async def work(pool: FramePool) -> None:
        left, wanted = pool.open_reel(order(cell, 0)), pool.open_reel(order(cell, 1))
        frames = [frame async for frame in wanted.follow()]
        assert len(frames) == cell[1].episodes[1].turns
        assert left.over

    use(work)


def test_orders_that_many_others_follow_are_given_up(cell: tuple[Path, CellRecord]) -> None:
    async def work(pool: FramePool) -> None:
        films = [pool.open_reel(order(cell, 0, film=f"{number}.gif")) for number in range(MAX_FILMS + 2)]
        reels = [pool.open_reel(order(cell, number)) for number in (1, 2, 3, 77, 78)]
        assert "since" in reels[0].message
        assert [reel.over for reel in reels] == [reel.again for reel in reels] == [True, False, False, False, False]
        assert [reel.over for reel in films] == [False] * (MAX_FILMS + 1) + [True]  # one is made, the others wait
        assert films[-1].again

    use(work)


def test_code_that_a_file_names_runs_only_with_trust(
    cell: tuple[Path, CellRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # another user, who signed nothing

    async def work(pool: FramePool) -> str:
        return (await follow(pool, order(cell, trust=False)))[1]

    assert "names code that you did not sign" in use(work)
