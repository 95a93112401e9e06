"""How fast objectives are, and how much memory they take: one JSON line per figure.

Figures in `calls` are processor seconds times the calls per second of `calibrate.py`, measured beside them. Whole
processes include start-up.
`python bench/bench_objectives.py quick` leaves out what takes more than 10^6 rows.
"""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrate import calls_per_second
from openfield.errors import InvalidInput
from openfield.files.database import Database
from openfield.objectives.formats.load import load_table
from openfield.objectives.formats.parquet import FIELDS, KEY
from openfield.objectives.frames.encode import discretize, downscale, encode, encode_frames
from openfield.objectives.tables.counts import count_columns
from openfield.objectives.tables.rows import Columns

ACTIONS = 18
PER_INPUT = 3.4
"""Entries per input, as in the published human table."""
EVALUATE = """
import json, pathlib, re, sys
from openfield.objectives import evaluate_file
found = evaluate_file(sys.argv[1], num_obs=400_000_000, num_actions=18)
peak = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]
print(json.dumps([found.values, int(peak) / 1024]))
"""
ONE_THREAD = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
"""As the command sets it: NumPy would start threads for matrices that nobody multiplies, which costs 0.04 s."""
COMMAND = "from openfield.cli import main; main()"


def main() -> None:
    quick = "quick" in sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="openfield-bench-") as folder:
        for figure in figures(Path(folder), quick):
            print(json.dumps(figure), flush=True)


def figures(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Every figure with its bar."""
    yield from command_figures(folder)
    yield from load_figures(folder)
    yield from hostile_figures(folder)
    yield from frame_figures()
    if not quick:
        yield from column_figures()
    sizes = {100_000: 1e6, 1_000_000: 5e6} | ({} if quick else {10_000_000: 2e7})
    for size, bar in sizes.items():
        path = save_plain(folder / f"{size}.pkl", size)
        cost = run_process([EVALUATE, str(path)])
        yield report(f"five objectives from a pickle of {size:,} entries, calls", cost.calls, bar, "lower")
        if size == 10_000_000:
            yield report("memory for 10,000,000 entries, MB", cost.megabytes, 1300, "lower")
        path.unlink()
    if not quick:
        yield from published_figures(folder)
        yield from large_figures(folder)


def report(figure: str, value: float, bar: float, better: str) -> dict[str, Any]:
    ok = value <= bar if better == "lower" else value >= bar
    shown = float(f"{value:.4g}")
    return {"subject": "objectives", "figure": figure, "value": shown, "bar": bar, "better": better, "ok": bool(ok)}


def best(run: Callable[[], Any], repeats: int = 3) -> float:
    """The least processor seconds of a few runs, with those of the processes they start."""
    found = []
    for _ in range(repeats):
        start = processor_seconds()
        run()
        found.append(processor_seconds() - start)
    return min(found)


def processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Cost(NamedTuple):
    """What a whole process took."""

    calls: float
    seconds: float
    megabytes: float


def run_process(code: list[str], repeats: int = 3) -> Cost:
    """A process with its start-up: the cheapest of a few runs."""
    found = []
    for _ in range(repeats):
        rate = calls_per_second(0.3)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = subprocess.run(
            [sys.executable, "-c", *code], check=True, capture_output=True, text=True, env=ONE_THREAD
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        last = json.loads(child.stdout)
        found.append(Cost(seconds * rate, seconds, last[1] if isinstance(last, list) else 0.0))
    return min(found)


def make_columns(size: int, seed: int = 0) -> Columns:
    """Distinct keys in no order, shaped like the human table: few entries per input, Zipf counts."""
    random = np.random.default_rng(seed)
    inputs = int(size / PER_INPUT) + 1
    keys = np.unique(random.integers(0, inputs * inputs * ACTIONS, size + size // 50 + 100))
    keys = random.permutation(keys)[:size]
    rest, action = np.divmod(keys, ACTIONS)
    obs, next_obs = np.divmod(rest, inputs)
    counts = random.zipf(1.7, size).clip(max=1_000_000)
    return Columns(obs.astype(np.int32), next_obs.astype(np.int32), action.astype(np.uint8), counts.astype(np.int32))


def save_plain(path: Path, size: int, number: Callable[[int], Any] = int) -> Path:
    """A pickle as users make it; with `number=np.int64`, as the published ones are."""
    obs, next_obs, action, counts = (column.tolist() for column in make_columns(size))
    table = dict(zip(zip(obs, map(number, action), next_obs, strict=True), counts, strict=True))
    path.write_bytes(pickle.dumps(table, 3))
    return path


def in_order(columns: Columns) -> Columns:
    order = np.lexsort((columns.action, columns.next_obs, columns.obs))
    return Columns(*(column[order] for column in columns))


def command_figures(folder: Path) -> Iterator[dict[str, Any]]:
    path = save_plain(folder / "command.pkl", 50_000)
    cost = run_process([COMMAND, "objectives", str(path), "--num-obs", "101509", "--json"])
    yield report("the command on 50,000 entries, CPU s", cost.seconds, 0.4, "lower")


def load_figures(folder: Path) -> Iterator[dict[str, Any]]:
    path = save_plain(folder / "published.pkl", 1_000_000, np.int64)
    theirs = best(lambda: pickle.loads(path.read_bytes()))
    ours = best(lambda: load_table(path))
    yield report("safe load of 10^6 published entries, times as fast as pickle.load", theirs / ours, 1, "higher")
    yield report("the same, as an aim", theirs / ours, 5, "higher")


def hostile_figures(folder: Path) -> Iterator[dict[str, Any]]:
    """The slowest refusal among files of 1 MB that look right for as long as they can, and which it is."""
    good = pickle.dumps({(number, 0, number): 1 for number in range(60_000)}, 3)
    files = {
        "bulk": good[:-1] + b"cos\nsystem\n",
        "single entries": b"\x80\x02}" + b"K\x01K\x02K\x03\x87K\x04s" * 90_000 + b"0.",
        "protocol 0": pickle.dumps({(number % 9, 0, number): 1 for number in range(36_000)}, 0)[:-1] + b"cos\n",
        "protocol 1": pickle.dumps({(number % 9, 0, number): 1 for number in range(60_000)}, 1)[:-1] + b"cos\n",
        "marks": b"\x80\x02" + b"(" * 999_998,
        "number in the memo": b"\x80\x04}(K\x01" + b"\x94" * 990_000,
        "puts": b"\x80\x03}" + b"r\x01\x00\x00\x00" * 200_000,
        "cut": good[:-1],
        "codes in batches of one": b"\x80\x02}" + b"(K\x01K\x02u" * 160_000,
        "batches of two": b"\x80\x02}" + b"(K\x01K\x02K\x03\x87K\x04K\x01K\x02K\x05\x87K\x04u" * 49_000,
        "wrong guesses": b"\x80\x02}(" + b"M\x87KK\x01J\x87\x87\x87\x87\x87J\x87K\x87K" * 62_000,
        "names": b"\x80\x03}(" + b"cnumpy\ndtype\n" * 70_000,
        "guesses everywhere": b"\x80\x02}(" + b"K\x87K\x87K\x87\x87K\x87" * 110_000,
        "guesses of digits": b"\x80\x04}\x94(" + (b"\x8a\xff" + (b"\x87I11" * 64)[:255] + b"I1\nI2\n\x87I3\n") * 3_700,
        "batches without an entry": b"\x80\x02}" + b"(u" * 490_000,
        "numbers of one hash": b"\x80\x02}(" + b"".join(map(colliding_entry, range(48_000))),
        "a mapping of one hash": b"\x80\x02}(" + b"".join(map(colliding_entry, range(48_000))) + b"u.x",
        "maps in maps": b"\x80\x02" + b"}K\x01" * 330_000,
        "tuples in tuples": b"\x80\x02K\x01" + b"\x85" * 990_000,
        "tuples of the same twice": b"\x80\x03K\x01" + b"2\x86" * 490_000,
        "empty frames": b"\x80\x04" + b"\x95\x00\x00\x00\x00\x00\x00\x00\x00" * 110_000,
        "a long number": b"\x80\x02L" + b"9" * 990_000 + b"L\n.",
        "a template for each entry": b"\x80\x02}(" + templates(990_000),
    }
    path, slowest = folder / "hostile.pkl", (0.0, "")
    for name, raw in chain(files.items(), hostile_kinds()):
        path.write_bytes(raw)
        slowest = max(slowest, (best(lambda: refuse(path)), name))
    yield report(f"the slowest refusal of a hostile file of 1 MB ({slowest[1]}), CPU s", slowest[0], 1.5, "lower")


def colliding_entry(number: int) -> bytes:
    """Integers that differ by 2**61 - 1 have one hash: a mapping of them takes quadratic time to build."""
    return b"\x8a\x0a" + (number * (2**61 - 1)).to_bytes(10, "little") + b"K\x00K\x00\x87K\x01"


def templates(size: int) -> bytes:
    """Entries whose numbers have all widths in turn, so that hardly two that are near each other look the same."""
    widths = [b"K\x01", b"M\x01\x01", b"J\x01\x01\x01\x01", *(b"\x8a%c" % n + b"\x01" * n for n in range(1, 9))]
    order = np.random.default_rng(0).integers(0, len(widths), (size // 20, 4)).tolist()
    entries = (b"%s%s%s\x87%s" % tuple(widths[number] for number in entry) for entry in order)
    return b"".join(entries)[:size]


def hostile_kinds() -> Iterator[tuple[str, bytes]]:
    """Files of 1 MB with every kind of number a table may hold, each with something else at its end."""
    tables: dict[str, Callable[[int], Any]] = {
        "fractions": lambda n: ((n, 0, n), 1.5),
        "large ids": lambda n: ((2**100 + n, 0, n), 1),
        "large everything": lambda n: ((2**70 + n, 2**71, -(2**72)), 2**70),
        "two kinds": lambda n: ((n, np.int64(n % 5), n), np.float64(0.5)),
    }
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"):
        kind = np.dtype(name).type
        tables[f"counts {name}"] = partial(small_entry, int, kind)
        if kind(0.5) == 0:
            tables[f"all {name}"] = partial(small_entry, kind, kind)
    for name, entry in tables.items():
        for protocol in (0, 1, 3, 4) if "large" in name or name == "fractions" else (3, 4):
            size = 2_000 * 980_000 // len(pickle.dumps(dict(map(entry, range(2_000))), protocol))
            raw = pickle.dumps(dict(map(entry, range(int(size * 0.97)))), protocol)
            yield f"{name}, protocol {protocol}", without_frames(raw)[:-1] + b"cos\nsystem\n"
    yield from hostile_books()
    for every in (1, 100, 513):
        yield f"a long integer among {every}", mixed_file(every, b"\x8a\x80" + bytes(range(128)))
        yield f"digits among {every}", mixed_file(every, b"I2147483648\n")


def hostile_books() -> Iterator[tuple[str, bytes]]:
    """Code books of 1 MB with every kind of number, in all protocols, with and without memo, and tables without it."""
    plain: dict[str, Callable[[int], Any]] = {
        "small codes": lambda n: (n, n % 250),
        "codes of 128 bits": lambda n: (2**127 + n, n),
        "codes of 500 bits": lambda n: (2**500 + n, n % 100),
    }
    numpy: dict[str, Callable[[int], Any]] = {
        f"indices {name}": partial(_code, np.dtype(name).type) for name in ("i1", "i4", "i8", "u1", "u8")
    } | {"codes u8": lambda n: (np.uint64(n), n)}
    for name, entry in (plain | numpy).items():
        for protocol in (3, 4) if name in numpy else (0, 1, 2, 4):
            size = 2_000 * 950_000 // len(pickle.dumps(dict(map(entry, range(2_000))), protocol))
            raw = pickle.dumps(({(1, 0, 1): 1}, dict(map(entry, range(size)))), protocol)
            yield f"{name}, protocol {protocol}", without_frames(raw)[:-1] + b"cos\nsystem\n"
            bare = without_frames(pickletools.optimize(raw))[:-1]
            yield f"{name}, protocol {protocol}, no memo", bare + b"cos\nsystem\n"
    for protocol, size in ((0, 55_000), (1, 90_000), (2, 90_000)):
        raw = pickletools.optimize(pickle.dumps({(n % 250, 0, n // 250): 1 for n in range(size)}, protocol))
        yield f"protocol {protocol}, no memo", raw[:-1] + b"cos\nsystem\n"


def _code(kind: Callable[[int], Any], n: int) -> tuple[int, Any]:
    return n, kind(n % 100)


def mixed_file(every: int, odd: bytes) -> bytes:
    """Entries of a few bytes, and after this many of them one that is spelled in another way."""
    some = b"K\x01K\x02K\x03\x87K\x04" * every + odd + b"K\x02K\x03\x87K\x04"
    return b"\x80\x02}(" + some * (990_000 // len(some))


def small_entry(part: Callable[[int], Any], count: Callable[[int], Any], n: int) -> Any:
    return (part(n % 100), part(n // 100 % 100), part(n // 10_000)), count(n % 100)


def without_frames(raw: bytes) -> bytes:
    """The same pickle with one frame less to be right about: marks of frames may be left out."""
    marks = [at or 0 for code, _, at in pickletools.genops(raw) if code.name == "FRAME"]
    edges = [0, *(edge for at in marks for edge in (at, at + 9)), len(raw)]
    return b"".join(raw[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def refuse(path: Path) -> None:
    try:
        load_table(path)
    except InvalidInput:
        return
    raise SystemExit(f"{path} was not refused")


def frame_figures() -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (1000, 210, 160)).astype(np.uint8)
    downscale(images[:10], 8)
    yield report(
        "downscale of 210 x 160 frames, frames/s", 1000 / best(lambda: downscale(images, 8), 5), 80_000, "higher"
    )
    small = random.random((50_000, 8, 8)) * 255
    _, bins = discretize(small[:1000], 4, return_bins=True)
    plain = best(lambda: encode(discretize(small, color_bins=bins), 4))
    yield report("discretize + encode, frames/s", len(small) / plain, 1.5e6, "higher")
    fused = best(lambda: encode_frames(small, bins))
    yield report("encode_frames, frames/s", len(small) / fused, 1.5e6, "higher")


def column_figures() -> Iterator[dict[str, Any]]:
    columns = make_columns(10_000_000)
    rate = calls_per_second()
    unsorted = best(lambda: count_columns(columns), 5) * rate
    yield report("10^7 unsorted rows in memory, calls", unsorted, 8e6, "lower")
    columns = in_order(columns)
    rate = calls_per_second()
    ordered = best(lambda: count_columns(columns, ordered=True), 9) * rate
    yield report("10^7 sorted rows in memory, calls", ordered, 3.5e6, "lower")


def published_figures(folder: Path) -> Iterator[dict[str, Any]]:
    path = save_plain(folder / "published.pkl", 10_000_000, np.int64)
    cost = run_process([EVALUATE, str(path)])
    path.unlink()
    yield report("five objectives from 10^7 published entries, CPU s", cost.seconds, 6, "lower")
    yield report("memory for 10^7 published entries, MB", cost.megabytes, 700, "lower")


def large_figures(folder: Path) -> Iterator[dict[str, Any]]:
    costs = []
    for size in (10_000_000, 100_000_000):
        path = save_sorted(folder / f"{size}.parquet", size)
        costs.append(run_process([EVALUATE, str(path)], 1))
        path.unlink()
    yield report("10^7 sorted rows, CPU s", costs[0].seconds, 4, "lower")
    yield report("10^8 rows beyond memory, MB resident", costs[1].megabytes, 2000, "lower")
    yield report("10^8 rows beyond memory, CPU s", costs[1].seconds, 150, "lower")


def save_sorted(path: Path, size: int, block: int = 1_000_000) -> Path:
    """A sorted table of any size, written a block of inputs at a time."""
    part = in_order(make_columns(block))
    width = int(part.obs.max()) + 1
    header = json.dumps({"ordered": True, "num_inputs": width * size // block})
    with Database(path) as base:
        base.run("CREATE TABLE rows (obs BIGINT, next_obs BIGINT, action BIGINT, count BIGINT)")
        for number in range(size // block):
            rows = part._replace(obs=part.obs.astype(np.int64) + number * width)
            base.insert("rows", dict(zip(FIELDS, rows, strict=True)))
        base.write_parquet("SELECT * FROM rows", path, {KEY: header})
    return path


if __name__ == "__main__":
    main()
