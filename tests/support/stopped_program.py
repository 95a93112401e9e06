"""Runs the cue world with an agent that says when it is asked, and waits for a sign: JOURNAL WORKERS."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

import openfield as of
from openfield.trial import Limits
from support.worlds import tiny_trials


def wait_for_sign(turn: of.Turn) -> of.Reply:
    """Answer once there is a file `go` in the folder that the environment names."""
    folder = Path(os.environ["SIGNS"])
    (folder / "asked").touch()
    while not (folder / "go").exists():
        pass
    return of.Reply(0)


def main(journal: str, workers: str) -> None:
    trials = [msgspec.structs.replace(trial, limits=Limits(reply_seconds=2.0)) for trial in tiny_trials(1)]
    of.run([wait_for_sign], trials, journal, workers=int(workers))


if __name__ == "__main__":
    main(*sys.argv[1:])
