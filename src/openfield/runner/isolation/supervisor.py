"""Start a program where bubblewrap does not work, and end everything it started when it ends or is to end.

This is a program of its own, started as `python -I -S supervisor.py FOLDER COMMAND...` and with nothing of openfield
imported. Orphans of the program become its children, also those that left their session, so it finds them all. It ends
with its parent. In the end it removes the folder.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main(folder: str, *words: str) -> int:
    """Run a command to its end and return its exit status."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    program = 0
    try:
        program = os.fork() or start(words)
        close_all_files()
        return wait_for(program)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_children()
        shutil.rmtree(folder, ignore_errors=True)


def start(words: tuple[str, ...]) -> int:
    """Replace this process by the program."""
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.execvp(words[0], words)  # noqa: S606
    except OSError as error:
        os.write(2, f"'{words[0]}' cannot be started: {error.strerror}.\n".encode())
    os._exit(127)


def close_all_files() -> None:
    """Close the program's pipes here: who reads them must see their end when the program closes them."""
    os.closerange(0, 1024)


def wait_for(program: int) -> int:
    """Wait until the program has ended, and return its exit status. Orphans may end before."""
    while True:
        child, status = os.wait()
        if child == program:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def end_children() -> None:
    """End all processes below this one. Children of those that end come here, until none is left."""
    while children := find_children():
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def find_children() -> list[int]:
    """Return the processes whose parent is this one."""
    own, found = os.getpid(), []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == own:
            found.append(int(name))
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
