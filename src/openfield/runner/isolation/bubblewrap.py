"""Ask whether bubblewrap works on this machine, and write its command lines."""

from __future__ import annotations

import functools
import shutil
import subprocess
import warnings

import msgspec

from openfield.runner.isolation.settings import Isolation
from openfield.runner.isolation.view import View, system_mounts

FOLDER = "/sandbox"
"""The working folder of every isolated program."""
TRY_SECONDS = 30.0
MISSING = (
    "Isolated agents can read your files, use the network, and see and signal your processes, because bubblewrap does "
    "not work here:"
)


def wrap(words: list[str], view: View, isolation: Isolation, info: int) -> list[str]:
    """Return the command that runs another one inside bubblewrap, with its own processes and without a network.

    Args:
        words: The command.
        view: What it sees.
        isolation: What it may use.
        info: The file number to which bubblewrap tells the number of the sandbox's first process.
    """
    private = ["--unshare-all", *(["--share-net"] if isolation.network else [])]
    return [
        *("bwrap", *private, "--die-with-parent", "--cap-drop", "ALL", "--info-fd", str(info)),
        *system_mounts(isolation.network, isolation.gpu),
        *view.mounts(),
        *("--dir", FOLDER, "--chdir", FOLDER, "--", *words),
    ]


def settle(isolation: Isolation) -> Isolation:
    """Return the isolation that this machine can give. A warning says what is missing."""
    obstacle = find_obstacle()
    if obstacle:
        warnings.warn(f"{MISSING} {obstacle}.", RuntimeWarning, stacklevel=2)
    return msgspec.structs.replace(isolation, missing=obstacle)


@functools.cache
def find_obstacle() -> str:
    """Return why bubblewrap does not work here; empty if it does."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed (Debian, Ubuntu, Fedora: the package bubblewrap)"
    words = wrap(["true"], View(), Isolation(), 2)
    try:
        tried = subprocess.run(words, capture_output=True, text=True, timeout=TRY_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be started ({error})"
    said = [line for line in tried.stderr.splitlines() if line.startswith("bwrap:")]
    return "" if tried.returncode == 0 else (said or [f"bwrap ended with status {tried.returncode}"])[-1]
