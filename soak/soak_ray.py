"""Ray on this machine in every domain: records equal those of one worker, also if foremen and workers are killed.

`--kills N` [20]. In each domain a process of the run, a foreman of Ray or a worker, is killed now and then.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from common import QUICK, complete, finish, folder, parameter, report, run_words, start, tell


def main(kills: int) -> None:
    fates, totals = random.Random(20), Counter[str]()
    with folder() as place:
        for number, domain in enumerate(QUICK):
            whole, path = place / f"whole-{number}.sqlite", place / f"ray-{number}.sqlite"
            complete(run_words(domain, whole, 1))
            command = start([*run_words(domain, path, 1), "--executor", "ray"])
            for _ in range(kills // len(QUICK)):
                time.sleep(fates.uniform(1, 5))
                while command.poll() is None and not kill_one(command.pid, fates):
                    time.sleep(0.1)
                totals["kills"] += command.returncode is None
            _, said = command.communicate()
            totals["failed"] += command.returncode != 0
            totals["different"] += not path.exists() or tell(path) != tell(whole)
            print(said[-300:] if command.returncode else "", end="")
    for figure in ("failed", "different"):
        report("ray", figure, totals[figure], 0, kills=totals["kills"], domains=len(QUICK))


def kill_one(driver: int, fates: random.Random) -> bool:
    """Kill a foreman or a worker process below a driver; return whether there was one."""
    found = [pid for pid in descendants(driver) if is_player(pid)]
    with suppress(ProcessLookupError, IndexError):
        os.kill(fates.choice(found), signal.SIGKILL)
        return True
    return False


def is_player(pid: int) -> bool:
    """Return whether a process is a foreman, or was started by one to play."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"ray::Foreman" in words or b"spawn_main" in words
    return False


def descendants(pid: int) -> list[int]:
    """Return all processes below one."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


if __name__ == "__main__":
    main(parameter("kills", 20, 5))
    finish()
