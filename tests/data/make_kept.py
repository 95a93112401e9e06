"""Make the kept run files anew: `python tests/data/make_kept.py`.

`kept/` holds a small run of every domain, and `kept/numbers.json` what is read from them. `tests/test_kept_files.py`
holds that every later openfield reads, verifies, replays and reports them alike. Once 0.2.0 is tagged they are not made
again: a domain that plays otherwise gets a higher version, and a file of its own beside the old one. Until then a file
that is made anew is a line in the CHANGELOG.
"""

import json
import os
import platform
import sqlite3
import sys
import tempfile
from contextlib import chdir, closing
from pathlib import Path

import openfield as of
from openfield.registry import find_domain

KEPT = Path(__file__).parent / "kept"
EXAMPLES = Path(__file__).parents[2] / "examples"
RUNS = {
    "birds": ("naive", "wind", {"training": 1, "before": 1, "after": 1}),
    "commai": (
        "memorising",
        "alphabet:easy",
        {"tasks": ["micro1", "micro2"], "max_steps": 800, "onset_instances": 1},
    ),
    "doom": ("reference", "tough:easy", {"training": 1, "episodes": 3, "limit": 60}),
    "doom-arena": ("reference", "102", {"training": 1, "episodes": 3, "limit": 40}),
    "gym:CartPole-v1": ("random", "motor:easy", {"before": 2, "after": 2}),
    "maze:MAZE": ("compass", "swapped", {"training": 1, "before": 1, "after": 1, "patience": 12}),
    "ond": (
        "msp",
        "classes",
        {"known": 3, "unknown": 2, "training": 30, "round_size": 5, "before": 1, "after": 1},
    ),
}
"""Domain -> the agent, the novelty, and settings that make a trial small."""


def main():
    """Play all runs, and keep their numbers."""
    KEPT.mkdir(exist_ok=True)
    sys.path.insert(0, str(EXAMPLES))
    sys.argv = [Path(__file__).name]  # with the next line, the record says nothing of this machine
    platform.platform = lambda: "Linux"
    told = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        os.environ["XDG_CONFIG_HOME"] = folder  # a key that signs these runs and nothing else
        for source, (agent, novelty, settings) in RUNS.items():
            domain = find_domain(source)
            path = KEPT / f"{domain.name}.sqlite"
            path.unlink(missing_ok=True)
            of.run([agent], domain.trials(count=1, novelty=novelty, **settings), path, workers=0)
            shrink(path)
            told[domain.name] = tell(path)
    (KEPT / "numbers.json").write_text(json.dumps(told, indent=1) + "\n")


def shrink(path):
    """Write a file with small pages: most of its tables have few rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA page_size = 1024")
        db.execute("VACUUM")


def tell(path):
    """Return what is read from a file: its fingerprint, the ids of its cells, and the means that are reported."""
    with of.journal.Run(path) as run:
        found = {"fingerprint": run.fingerprint(), "cells": [cell.id for cell in run.cells()]}
    groups = of.Result([path]).summary().groups
    means = [{name: each.mean for name, each in group.estimates.items() if each.mean is not None} for group in groups]
    return {**found, "means": means}


if __name__ == "__main__":
    main()
