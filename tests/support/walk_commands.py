"""A program that runs commands of openfield one after the other in one process, and says what came of each.

    python walk_commands.py ORDERS ANSWERS [--bare-system]

ORDERS is a JSON list of command lines as lists of words; `--help` of every command there is comes first. ANSWERS is a
JSON list of objects with `words`, `status`, `out` and `err`. With `--bare-system` the process lacks what only Linux and
other POSIX systems have, and every optional package.
"""

from __future__ import annotations

import asyncio.subprocess
import concurrent.futures.process
import contextlib
import io
import json
import logging.handlers
import multiprocessing.managers
import multiprocessing.pool
import multiprocessing.popen_spawn_posix
import multiprocessing.synchronize
import os
import signal
import sqlite3
import ssl
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import cyclopts
import jinja2
import msgspec
import numpy.random
import rich.progress
import rich.table

OURS = (asyncio.subprocess, concurrent.futures.process, logging.handlers, multiprocessing, sqlite3, ssl, tempfile)
THEIRS = (cyclopts, jinja2, msgspec, numpy.random, rich.progress, rich.table)
"""What may use the system as it is: it is imported before parts of that are taken away."""
POSIX_MODULES = "fcntl resource pwd grp termios tty pty curses _curses readline syslog"
POSIX_CALLS = (
    "fork forkpty register_at_fork getuid geteuid getgid setsid killpg getpgid sysconf statvfs uname pread "
    "posix_fallocate getloadavg sched_getaffinity mkfifo O_NOFOLLOW O_CLOEXEC waitid wait4"
)
POSIX_SIGNALS = (
    "SIGKILL SIGUSR1 SIGUSR2 SIGALRM SIGHUP SIGCHLD SIGQUIT SIGSTOP SIGTSTP SIGCONT pthread_sigmask setitimer alarm "
    "SIG_BLOCK SIG_UNBLOCK SIG_SETMASK"
)
OPTIONAL = (
    "starlette uvicorn httptools uvloop websockets PIL httpx multipart gymnasium vizdoom blosc Box2D defusedxml duckdb "
    "numba openai onnxruntime ray aio_pika pygame crafter minigrid ale_py inspect_ai scipy sklearn"
)


def take_away() -> None:
    """Leave this process without what only POSIX systems have, and without optional packages."""
    for name in f"{POSIX_MODULES} {OPTIONAL}".split():
        sys.modules[name] = None  # type: ignore[assignment]
    for owner, names in ((os, POSIX_CALLS), (signal, POSIX_SIGNALS)):
        for name in names.split():
            if hasattr(owner, name):
                delattr(owner, name)
    if hasattr(os, "process_cpu_count"):
        os.process_cpu_count = os.cpu_count  # as elsewhere: the POSIX form asks for the affinity


def list_commands() -> list[list[str]]:
    """Return the words of every command, those of domains included."""
    from openfield.cli.app import make_command_line
    from openfield.registry import installed_domains

    def walk(app: Any, words: list[str]) -> list[list[str]]:
        below = [walk(app[name], [*words, name]) for name in app if not name.startswith("-")]
        return [words, *(found for each in below for found in each)]

    own = {each.name: each.commands for each in installed_domains() if each.commands}
    of_domains = [[name, *rest] for name, commands in own.items() for rest in ([], *([each] for each in commands))]
    return walk(make_command_line([]), []) + of_domains


def obey(words: list[str]) -> dict[str, Any]:
    """Run a command and return what it printed and how it ended. It reads nothing."""
    from openfield.cli import run_command

    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.StringIO("")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status: Any = run_command(words)
        except SystemExit as left:
            status = left.code
        except BaseException:
            status = traceback.format_exc()
    return {"words": words, "status": status, "out": out.getvalue(), "err": err.getvalue()}


def main(orders: Path, answers: Path, bare: bool) -> None:
    """Run the commands in a file and write what came of them into another."""
    if bare:
        take_away()
    wanted: list[list[str]] = json.loads(orders.read_text())
    helped = [[*words, option] for words in list_commands() for option in ("--help", "--help-all")]
    answers.write_text(json.dumps([obey(words) for words in (*helped, *wanted)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), "--bare-system" in sys.argv)
