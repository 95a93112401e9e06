"""Receipts tell threads and event loops that something is done: each of them once, whenever they ask."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from openfield.journal.receipt import Receipt, find_loop_queue


def test_a_thread_waits_for_what_came_of_it() -> None:
    receipt: Receipt[int] = Receipt()
    threading.Timer(0.01, receipt.settle, (7,)).start()
    assert receipt.result(timeout=60) == 7
    assert receipt.result() == 7


def test_a_thread_does_not_wait_for_ever() -> None:
    receipt: Receipt[int] = Receipt()
    with pytest.raises(TimeoutError):
        receipt.result(timeout=0.001)
    assert not receipt.done()


@pytest.mark.parametrize("settled_first", [True, False])
def test_an_event_loop_waits_without_standing_still(settled_first: bool) -> None:
    async def wait() -> list[int]:
        receipt: Receipt[int] = Receipt()
        settling = threading.Timer(0.01, receipt.settle, (7,))
        settling.start()
        if settled_first:
            settling.join()
        return list(await asyncio.gather(*(_wait(receipt) for _ in range(3))))

    assert asyncio.run(wait()) == [7, 7, 7]


def test_what_went_wrong_is_raised_wherever_somebody_waits() -> None:
    receipt: Receipt[int] = Receipt()
    receipt.settle(None, ValueError("no room"))
    assert str(receipt.failure) == "no room"
    with pytest.raises(ValueError, match="no room"):
        receipt.result()
    with pytest.raises(ValueError, match="no room"):
        asyncio.run(_wait(receipt))


def test_whoever_lost_interest_is_not_told() -> None:
    async def give_up(receipt: Receipt[int]) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_wait(receipt), 0.001)
        receipt.settle(7)
        await asyncio.sleep(0)

    abandoned, forgotten = Receipt[int](), Receipt[int]()
    asyncio.run(give_up(abandoned))
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(_wait(forgotten))
    loop.run_until_complete(asyncio.sleep(0))
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()
    forgotten.settle(7)  # whose loop is closed
    assert (abandoned.result(), forgotten.result()) == (7, 7)


def test_every_call_is_made_once_however_many_threads_there_are() -> None:
    for _ in range(200):
        receipt: Receipt[int] = Receipt()
        made: list[int] = []
        start = threading.Barrier(2)

        def ask(receipt: Receipt[int] = receipt, made: list[int] = made, start: threading.Barrier = start) -> None:
            start.wait()
            for number in range(20):
                receipt.then(lambda number=number: made.append(number))  # type: ignore[misc]

        asking = threading.Thread(target=ask)
        asking.start()
        start.wait()
        receipt.settle(0)
        asking.join()
        assert sorted(made) == list(range(20))


def test_calls_for_an_event_loop_are_made_there_with_one_message() -> None:
    async def wait() -> None:
        loop, made, receipt = asyncio.get_running_loop(), list[str](), Receipt[int]()
        loop_queue, over, complaints = find_loop_queue(loop), asyncio.Event(), list[str]()
        loop.set_exception_handler(lambda _, told: complaints.append(str(told["exception"])))

        def call(name: str) -> None:
            made.append(f"{name} in {threading.current_thread().name}")
            if name == "bad":
                raise ValueError("a call that fails")

        for name in ("first", "bad", "last"):
            receipt.then_in_loop(loop_queue, partial(call, name))
        settling = threading.Thread(target=receipt.settle, args=(7,))
        settling.start()
        settling.join()
        assert made == []  # this is the loop, which is busy
        receipt.then_in_loop(loop_queue, over.set)  # it joins the others
        await over.wait()
        here = threading.current_thread().name
        assert made == [f"{name} in {here}" for name in ("first", "bad", "last")]
        assert complaints == ["a call that fails"]
        over.clear()
        receipt.then_in_loop(loop_queue, over.set)  # the work is done already
        await over.wait()

    asyncio.run(wait())


async def _wait(receipt: Receipt[int]) -> int:
    return await receipt
