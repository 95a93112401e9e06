"""Runs the cue world in a process of its own, which may end itself the hard way: JOURNAL AGENT WORKERS [ENTRIES]."""

from __future__ import annotations

import os
import signal
import sys

import openfield as of
from openfield.journal import recorder
from openfield.record import Entry
from support import players
from support.worlds import tiny_trials

TRIALS, EPISODES = 3, {"training": 2, "before": 5, "after": 5, "padding": 500}
recorder.COSTLY_REPLY = 0  # every reply is written down at once, so that a kill may come between any two


def main(journal: str, agent: str, workers: str = "0", fatal: str = "0") -> None:
    left = int(fatal)

    def watch(entry: Entry) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    trials = tiny_trials(TRIALS, seed=7, **EPISODES)
    every = 0.0 if agent == "FickleSaver" else 0.02  # a fickle agent can only go on from a state
    of.run([getattr(players, agent)], trials, journal, workers=int(workers), watch=watch, save_seconds=every)


if __name__ == "__main__":
    main(*sys.argv[1:])
