"""A study on live games, played whole and killed on the way: its page comes, and its numbers are the same.

`--kills N` [5]. The quick form of `examples/atari_study.toml` is played to its end and timed. Then a copy of it, with
shorter lives, is killed now and then while it plays; in the end its rows must equal those of one that was left alone.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

from common import ROOT, complete, finish, folder, parameter, report, start

MINUTES = 3
"""What the quick form may take on two idle cores."""
STUDY = ROOT / "examples" / "atari_study.toml"


def main(kills: int) -> None:
    with folder() as place:
        began = time.monotonic()
        status, said = complete(["objectives", "study", str(STUDY), "--quick", "-o", str(place / "quick")])
        print(said[-300:] if status else "", end="")
        minutes = (time.monotonic() - began) / 60
        rows = json.loads((place / "quick" / "study.json").read_text())["rows"] if status == 0 else []
        report("study", "minutes of the quick form", minutes, MINUTES, cores=os.cpu_count())
        report("study", "rows of the quick form", len(rows), 24, "higher")
        short = place / "short.toml"
        short.write_text(STUDY.read_text().replace("steps = 3_000", "steps = 300"))
        words = ["objectives", "study", str(short), "--quick"]
        complete([*words, "-o", str(place / "whole")])
        killed = kill_often(words, place / "killed", kills)
        complete([*words, "-o", str(place / "killed")])
        different = rows_of(place / "killed") != rows_of(place / "whole")
        report("study", "different after kills", int(different), 0, kills=killed)


def kill_often(words: list[str], output: Path, kills: int) -> int:
    """Start a study again and again, and kill it after it has played some lives; return how often that was."""
    fates, killed = random.Random(23), 0
    for _ in range(kills):
        study = start([*words, "-o", str(output)])
        wanted = len(list(output.glob("lives/*.npz"))) + fates.randint(1, 8)
        while study.poll() is None and len(list(output.glob("lives/*.npz"))) < wanted:
            time.sleep(0.05)
        if study.poll() is None:
            os.killpg(study.pid, signal.SIGKILL)
            killed += 1
        study.communicate()
    return killed


def rows_of(output: Path) -> object:
    return json.loads((output / "study.json").read_text())["rows"]


if __name__ == "__main__":
    main(parameter("kills", 5, 2))
    finish()
