"""Make the run files of this folder with openfield 0.1.0: `python make.py`, in an empty folder.

`openfield` must be 0.1.0 when this runs. Each run is stopped in its last cell, so that there is something to resume:
by Ctrl-C, or (maze, commai) by the end of the process. See README.md.
"""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx

import openfield as of
from openfield.errors import Cancelled
from openfield.registry import find_agent, find_domain

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.served import PLAYING, Team, Visitor, serving

RUNS = {
    "birds": ("birds", ["naive", "random"], "wind", 1, {"before": 1, "after": 1, "training": 1}, 7),
    "commai": (
        "commai",
        ["memorising", "echo"],
        "alphabet:easy",
        5,
        {"tasks": ["micro1", "micro2"], "max_steps": 300, "onset_instances": 1},
        230,
    ),
    "doom": ("doom", ["reference", "random"], "tough:easy", 1, {"training": 1, "episodes": 3, "limit": 30}, 35),
    "doom-arena": ("doom-arena", ["reference", "random"], "102", 1, {"training": 1, "episodes": 3, "limit": 15}, 7),
    "maze": (
        "maze:MAZE",
        ["random", "compass"],
        "swapped",
        6,
        {"training": 1, "before": 1, "after": 1, "patience": 12},
        15,
    ),
    "ond": (
        "ond",
        ["msp", "knn"],
        "classes",
        5,
        {"known": 3, "unknown": 2, "training": 30, "round_size": 5, "before": 1, "after": 1},
        5,
    ),
}
"""The domain, the agents, the novelty, the trials, their settings, and the turn of the last cell that is its end."""
METRICS = {
    "birds": ("performance", "detection", "adaptation", "passive"),
    "commai": ("performance", "gradual", "detection", "adaptation"),
    "doom": ("performance", "detection", "adaptation", "programme", "characterisation"),
    "doom-arena": ("performance", "detection", "adaptation", "programme", "characterisation"),
    "maze": ("performance", "detection", "adaptation"),
    "ond": ("performance", "detection", "adaptation", "openset"),
}
KILLED = ("maze", "commai")


def main():
    """Make all files: one process each, since some of them die on purpose."""
    for name in RUNS:
        subprocess.run([sys.executable, __file__, name], check=False)
        tidy(Path(f"{name}.sqlite"))
    serve_ond(Path("ond-served.sqlite"))
    serve_birds(Path("birds-served.sqlite"))
    time.sleep(65)  # until the leases of the processes that were killed have run out
    for path in sorted(Path().glob("*.sqlite")):
        keep_numbers(path)
        if not path.stem.endswith("-served"):
            keep_resumed(path)


def play(name):
    """Play a run and stop it in its last cell, at a turn in the middle of it."""
    source, agents, novelty, count, settings, turn = RUNS[name]
    domain = find_domain(source)
    trials = domain.trials(count=count, novelty=novelty, **settings)
    socket.gethostname = lambda: "somewhere"  # stands in the file of a process that was killed
    stop_last(domain, agents, name, len({trial.id for trial in trials}), turn)
    with suppress(Cancelled):
        of.run(agents, trials, Path(f"{name}.sqlite"))


def stop_last(domain, agents, name, trials, turn):
    """Have the last agent that is made stop the run when it is asked for the so-manieth time."""
    made = find_agent(agents[-1], domain)
    kind, answer = made, made.__call__
    count = {"made": 0, "asked": 0}
    start = kind.__init__

    def begin(self, *given, **named):
        count["made"] += 1
        count["asked"] = 0
        start(self, *given, **named)

    def respond(self, shown):
        count["asked"] += 1
        if count["made"] == trials and count["asked"] == turn:
            if name in KILLED:
                time.sleep(2)  # what was emitted gets written
                os._exit(9)
            os.kill(os.getpid(), signal.SIGINT)
        return answer(self, shown)

    kind.__init__, kind.__call__ = begin, respond


def tidy(path):
    """Fold the log of a process that was killed into its file."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()


def serve_ond(path):
    """Serve two tests to one agent: it finishes the first and leaves the second after a round."""
    settings = ("known=3", "unknown=2", "training=30", "round_size=5", "before=1", "after=2")
    options = [word for each in settings for word in ("--set", each)]
    with (
        serving(path, "ond", "--trials", "2", *options) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as http,
    ):
        visitor = Visitor(http)
        first, second = visitor.tests
        visitor.open()
        visitor.play(first)
        visitor.play(second, rounds=1)
    path.with_suffix(".visit.json").write_text(json.dumps({"session": visitor.session, "test": second}) + "\n")


def serve_birds(path):
    """Serve a trial of two levels to one team: it plays the first and leaves in the second."""
    options = ["--trials", "1", "--observer-port", "0", "--set", "before=1", "--set", "after=1"]
    with serving(path, "birds", *options) as port, Team(port, 28888) as team:
        team.play(until=PLAYING)
        team.shoot()


def keep_numbers(path):
    """Keep what 0.1.0 says of a file: its numbers, its ids, its episodes."""
    words = [sys.executable, "-m", "openfield"]
    report = subprocess.run([*words, "report", str(path), "--json"], capture_output=True, text=True, check=True).stdout
    shown = subprocess.run([*words, "show", str(path), "--json"], capture_output=True, text=True, check=True).stdout
    subprocess.run([*words, "verify", str(path)], check=True)
    subprocess.run([*words, "export", str(path), "-o", str(path.with_suffix(".episodes.csv"))], check=True)
    chosen = [word for metric in METRICS[path.stem.removesuffix("-served")] for word in ("--metric", metric)]
    subprocess.run([*words, "export", str(path), *chosen, "-o", str(path.with_suffix(".cells.csv"))], check=True)
    with sqlite3.connect(path) as db:
        ids = [
            {"cell": cell, "trial": trial} for cell, trial in db.execute("SELECT id, trial FROM cells ORDER BY rowid")
        ]
    kept = {"ids": ids, "show": json.loads(shown), "report": json.loads(report)}
    if path.stem in RUNS:
        domain, _, novelty, count, settings, _ = RUNS[path.stem]
        kept["plan"] = {"domain": domain, "novelty": novelty, "count": count, "settings": settings}
    path.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n")


def keep_resumed(path):
    """Keep the episodes that 0.1.0 has when it has resumed a file."""
    again = Path(shutil.copy(path, "resumed.sqlite"))
    subprocess.run([sys.executable, "-m", "openfield", "resume", str(again), "--workers", "0"], check=True)
    words = [sys.executable, "-m", "openfield", "export", str(again), "-o", str(path.with_suffix(".resumed.csv"))]
    subprocess.run(words, check=True)
    again.unlink()


if __name__ == "__main__":
    play(*sys.argv[1:]) if sys.argv[1:] else main()
