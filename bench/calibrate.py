"""How fast is this machine at plain Python right now? `python bench/calibrate.py` prints one JSON line.

Benchmarks measure the rate of these calls in their own run and give their figures in calls, so that figures from a
busy machine, or from another one, can be compared. The work is fixed for good: changing it changes every bar.
"""

from __future__ import annotations

import json
import time


class Tally:
    """Counts symbols and remembers the last few."""

    __slots__ = ("count", "text")

    def __init__(self) -> None:
        self.count = 0
        self.text = ""

    def feed(self, symbol: str) -> int:
        """One call: a method, a sum, a string made and cut."""
        self.count += 1
        self.text = (self.text + symbol)[-8:]
        return self.count & 7


def work(calls: int) -> int:
    """Makes this many calls, with the traffic of dictionaries and strings an interpreted simulator has."""
    tally: Tally = Tally()
    seen: dict[int, int] = {}
    for i in range(calls):
        key = tally.feed(chr(97 + i % 26))
        seen[key] = seen.get(key, 0) + 1
    return len(seen)


def calls_per_second(seconds: float = 1.0) -> float:
    """The median over short measurements in processor time."""
    rates: list[float] = []
    end = time.process_time() + seconds
    while time.process_time() < end or len(rates) < 3:
        start = time.process_time()
        work(20_000)
        rates.append(20_000 / (time.process_time() - start))
    return sorted(rates)[len(rates) // 2]


if __name__ == "__main__":
    print(json.dumps({"calls_per_s": round(calls_per_second())}))
