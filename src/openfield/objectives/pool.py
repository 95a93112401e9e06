"""Run tasks in worker processes that end with the study, however it ends.

Python's own pool spreads the tasks over processes and hands back results of any kind, which `Caller` does not. How they
start and end is that of `openfield.processes`.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import TypeVar

from openfield.processes.child import check_signals, end_with_parent, undisturbed

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_in_pool(work: Callable[[Task], Result], tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result as it is done.

    Args:
        work: A function at the top of a module.
        tasks: Its arguments, one call each.
        workers: Processes.

    Raises:
        BrokenProcessPool: A process died.
    """
    if not tasks:
        return
    check_signals()
    spawn = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(min(workers, len(tasks)), spawn, initializer=_die_with_the_study) as pool:
        try:
            with undisturbed():
                running: Mapping[Future[Result], Task] = {pool.submit(work, task): task for task in tasks}
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            for worker in {*multiprocessing.active_children()} - {*others}:
                worker.terminate()
            pool.shutdown(cancel_futures=True)  # waits: Python's last call to a pool that just closes fails in words
            raise


def _die_with_the_study() -> None:
    """Ctrl-C reaches all processes; a worker that unwinds instead may hold a lock its pool then waits for.

    A study that is killed ends without a word to its workers, who would wait for their next task for ever.
    """
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
