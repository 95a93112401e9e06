"""What the processes of isolated agents use, seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from openfield.isolation import Isolation
from openfield.runner.isolation import usage
from openfield.runner.isolation.sandbox import has_own_root
from openfield.runner.isolation.usage import UsageWatch, find_descendants, list_memory_files, read_share, read_stat
from support.stories import wait_until

SLEEPER = "import time; kept = bytearray(b'x' * (64 << 20)); print('ready', flush=True); time.sleep(600)"


def test_processes_are_measured_from_outside() -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {SLEEPER!r}])"
    parent = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        (child,) = find_descendants(parent.pid)
        threads, seconds, resident = read_stat(child)
        assert threads == 1
        assert 0 < seconds < 60
        assert 64 << 20 < resident < 128 << 20
        assert 64 << 20 < read_share(child) <= resident
    finally:
        os.killpg(parent.pid, 9)
        parent.communicate()


def test_files_without_a_name_are_found() -> None:
    number = os.memfd_create("kept")
    try:
        os.write(number, b"x" * 8192)
        assert (os.fstat(number).st_ino, 8192) in list(list_memory_files(usage.PROC / "self"))
    finally:
        os.close(number)


def test_what_an_agent_prints_is_not_kept_for_ever() -> None:
    with tempfile.TemporaryFile() as output:
        output.write(bytes(range(256)) * (usage.MAX_OUTPUT // 256 + 1))
        output.flush()
        watch = UsageWatch(Isolation(), lambda: [], lambda: None)
        watch.output = output.fileno()
        wait_until(lambda: os.fstat(output.fileno()).st_size == 0)
        watch.close()
        assert watch.reason == ""


def test_what_the_machine_uses_is_not_counted_while_a_sandbox_is_set_up() -> None:
    """The first process of a sandbox still sees the files and processes of the machine, and on a busy one for long."""
    assert not has_own_root(os.getpid())
    assert not has_own_root(0)
    looks: list[Path] = []

    def find() -> list[Path]:
        looks.append(usage.PROC)
        return []

    watch = UsageWatch(Isolation(memory="1KB"), find, lambda: None)
    watch.folders = ("/",)
    wait_until(lambda: len(looks) > 3 or watch.reason)
    watch.close()
    assert watch.reason == ""
