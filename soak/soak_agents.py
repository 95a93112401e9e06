"""More than fifty misbehaving agents beside good ones: the run ends, each is blamed for its deeds, nothing is left.

Also over the process protocol: floods, rubbish, silence. The good agents must play as they do alone.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from common import QUICK, SMALL, complete, finish, folder, report, tell
from misbehaving_agents import DEEDS
from openfield.journal.reader import Run

MAZE = "examples/maze.py"
MARK = secrets.token_hex(16)
"""In the environment of a run, and so of what its agents start."""
PROGRAMS = {
    "floods": "print('x' * 200_000_000)",
    "floods_lines": '[print(\'{"type": "reply"}\') for _ in range(100_000)]',
    "rubbish": "sys.stdout.buffer.write(os.urandom(5_000)); sys.stdout.flush()",
    "nested": "print('[' * 1_000_000)",
    "silent": "time.sleep(900)",
    "ends": "sys.exit(7)",
    "terminates_parent": "os.kill(os.getppid(), 15)",
    "leaves_child": "subprocess.Popen(['sleep', '907'])",
}
HELLO = """import json, os, subprocess, sys, time
print(json.dumps({'type': 'hello'}), flush=True)
sys.stdin.readline()
"""


def main() -> None:
    with folder() as place:
        agents = [word for name in DEEDS for word in ("--agent", f"{name}=soak/misbehaving_agents.py:{name}")]
        for name, code in PROGRAMS.items():
            (place / f"{name}.py").write_text(HELLO + code)
            agents += ["--agent", f"program_{name}=process:{sys.executable} {place / name}.py"]
        for way in ("in workers", "isolated"):
            play(place / f"{way}.sqlite", way, agents)
            left = find_left()
            report("agents", f"{way}: processes left", len(left), 0, which=left)


def play(path: Path, way: str, agents: list[str]) -> None:
    """Play all of them between two good agents, and those alone."""
    trials = ["--trials", "1", "--set", "unchanged=0"] if SMALL else QUICK[MAZE]
    words = ["run", MAZE, *trials, "--workers", "2", "--reply-seconds", "3", "-o"]
    alone = path.with_suffix(".alone.sqlite")
    complete([*words, str(alone), "--agent", "random", "--agent", "last=compass"])
    began, isolated = time.monotonic(), ["--isolate"] if way == "isolated" else []
    played = [*words, str(path), *isolated, "--agent", "random", *agents, "--agent", "last=compass"]
    status, said = complete(played, env={**os.environ, "SOAK_RUN": MARK})
    count, seconds = len(agents) // 2, round(time.monotonic() - began, 1)
    said_last = said[-2_000:] if status else ""
    report("agents", f"{way}: exit status", status, 0, agents=count, seconds=seconds, said=said_last)
    report("agents", f"{way}: tracebacks of ours", said.count("src/openfield/runner"), 0)
    expected, found = tell(alone), tell(path)
    report("agents", f"{way}: good cells that differ", sum(found.get(key) != expected[key] for key in expected), 0)
    judge(path, way)


def judge(path: Path, way: str) -> None:
    """Say which cells have no outcome, and which failures were not blamed on the agent."""
    with Run(path) as run:
        outcomes = {(cell.agent, cell.trial.id): (str(cell.outcome), cell.note) for cell in run.cells()}
    ours = {key: value for key, value in outcomes.items() if not value[0].startswith(("agent_", "done", "truncated"))}
    blamed = {agent for (agent, _), (outcome, _) in outcomes.items() if outcome.startswith("agent_")}
    which = sorted({f"{agent}: {value}" for (agent, _), value in ours.items()})
    more: dict[str, Any] = {"cells": len(outcomes), "blamed": len(blamed), "which": which}
    report("agents", f"{way}: cells that are not the agent's fault", len(ours), 0, **more)


def find_left() -> list[str]:
    """Return the command lines of processes that the agents started and that still run; others may run elsewhere."""
    time.sleep(2)
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            line, environment = (Path(f"/proc/{name}/{part}").read_bytes() for part in ("cmdline", "environ"))
            orphan = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1] == "1"
        except OSError:
            continue
        ours = MARK.encode() in environment and int(name) != os.getpid()
        if b"sleep\x00907" in line or ours or (orphan and b"openfield/runner/isolation" in line):
            found.append(line.decode(errors="replace"))
    return found


if __name__ == "__main__":
    main()
    finish()
