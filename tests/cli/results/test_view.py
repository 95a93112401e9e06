"""`openfield view` and `openfield run --view`: the address, the browser, and how they end."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from openfield.cli.shared.viewer import has_screen
from support.places import MAZE
from support.stories import wait_until

Spawn = Callable[..., "subprocess.Popen[bytes]"]


def read_until(stream: object, pattern: str) -> str:
    """Return what a pattern finds in the first line that has it."""
    for line in stream:  # type: ignore[attr-defined]
        if found := re.search(pattern, line.decode()):
            return found[1]
    raise AssertionError(f"{pattern} was not printed")


def test_the_viewer_ends_at_once_without_a_word(spawn: Spawn, finished: Path) -> None:
    words = ("-m", "openfield", "view", finished.parent, "--no-browser", "--port", "0")
    viewer = spawn(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    address = read_until(viewer.stdout, r"The viewer: (\S+)")
    with httpx.Client(follow_redirects=True) as client:
        assert "maze" in client.get(address).text
        with client.stream("GET", httpx.URL(address).join("/events")) as stream:
            assert "hello" in next(stream.iter_text())  # a page that stays open does not keep it
            viewer.send_signal(signal.SIGINT)
            assert viewer.wait() == 130
    assert viewer.stderr is not None
    assert viewer.stderr.read() == b""


def test_a_run_is_shown_while_it_is_played_and_afterwards(spawn: Spawn, tmp_path: Path) -> None:
    words = ("-m", "openfield", "run", MAZE, "--trials", "1", "--workers", "0", "--view", "-o", tmp_path / "run.sqlite")
    run = spawn(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    address = read_until(run.stderr, r"The viewer: (\S+)")
    assert "/runs/run-" in address
    read_until(run.stderr, "(goes on)")
    with httpx.Client(follow_redirects=True) as client:
        assert "Finished" in client.get(address).text
    run.send_signal(signal.SIGINT)
    assert run.wait() == 0
    assert run.stdout is not None
    assert b"Recorded in" in run.stdout.read()


def test_the_viewer_of_a_killed_run_ends_with_it(spawn: Spawn, tmp_path: Path) -> None:
    words = ("-m", "openfield", "run", MAZE, "--trials", "1", "--workers", "0", "--view", "-o", tmp_path / "run.sqlite")
    run = spawn(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    address = httpx.URL(read_until(run.stderr, r"The viewer: (\S+)"))
    run.kill()
    run.wait()
    wait_until(lambda: not takes_connections(address))


def takes_connections(address: httpx.URL) -> bool:
    """Return whether somebody listens at an address."""
    try:
        socket.create_connection((address.host, address.port or 80)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_browser_needs_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert not has_screen()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_screen()
