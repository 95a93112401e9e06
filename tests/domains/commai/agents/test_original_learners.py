"""Learners in other programs, as code for the original starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Spawn
from support.places import ROOT
from support.stories import alive, wait_until

OWNER = """
import signal, sys
from openfield.domains.commai.agents.original_learners import RemoteLearner
learner = RemoteLearner(sys.argv[1], port=0, address="127.0.0.1")
print(learner.next("a"), learner._program.pid, flush=True)
signal.pause()
"""


def test_a_learner_in_another_program_answers_and_does_not_outlive_its_owner(tmp_path: Path, spawn: Spawn) -> None:
    pytest.importorskip("zmq", reason="pyzmq is not installed")
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    peer = ROOT / "tests" / "support" / "commai" / "peer.py"
    owner = spawn(script, f"{sys.executable} {peer}", stdout=subprocess.PIPE)
    assert owner.stdout is not None
    symbol, pid = owner.stdout.readline().split()
    assert symbol == b"a"
    owner.kill()
    wait_until(lambda: not alive(int(pid)))
