"""Ask whether bubblewrap works on this machine, and write its command lines."""

from __future__ import annotations

import functools
import subprocess
import sys
import warnings
from dataclasses import replace

from openfield.errors import InvalidInput
from openfield.installation import find_program
from openfield.isolation import Isolation
from openfield.runner.isolation.view import View, system_mounts

FOLDER = "/sandbox"
"""The working folder of every isolated program."""
TRY_SECONDS = 30.0
MAX_WORDS = 9_000
"""bubblewrap takes no more arguments. Every file that is shown or covered alone needs two or three."""
MISSING = (
    "Isolated agents can read your files, use the network, and see and signal your processes, because bubblewrap does "
    "not work here:"
)


def wrap(words: list[str], view: View, isolation: Isolation, info: int) -> list[str]:
    """Return the command that runs another one inside bubblewrap, with its own processes and without a network.

    Args:
        words: The command.
        view: The files it sees.
        isolation: Its rights.
        info: The file number to which bubblewrap writes the number of the sandbox's first process.

    Raises:
        InvalidInput: The folders of the view hold more files to hide than bubblewrap can.
    """
    private = ["--unshare-all", *(["--share-net"] if isolation.network else [])]
    command = [
        *("bwrap", *private, "--die-with-parent", "--cap-drop", "ALL", "--info-fd", str(info)),
        *system_mounts(isolation.network, isolation.gpu),
        *view.mounts(),
        *("--dir", FOLDER, "--chdir", FOLDER, "--", *words),
    ]
    if len(command) > MAX_WORDS:
        places = ", ".join(sorted({str(each) for each in view.folders}))
        raise InvalidInput(
            f"There are too many run files and hidden files to keep from an isolated agent in {places}. Put the agent "
            "into a folder of its own, and run files into another."
        )
    return command


def adapt_isolation(isolation: Isolation) -> Isolation:
    """Return the isolation that this machine can give. A warning names missing parts.

    Raises:
        InvalidInput: This is not Linux.
    """
    if sys.platform != "linux":
        raise InvalidInput("Agents can be isolated on Linux only. Leave out --isolate.")
    obstacle = find_obstacle()
    if obstacle:
        warnings.warn(f"{MISSING} {obstacle}.", RuntimeWarning, stacklevel=2)
    return replace(isolation, missing=obstacle)


@functools.cache
def find_obstacle() -> str:
    """Return why bubblewrap does not work here; empty if it does."""
    if find_program("bwrap") is None:
        return "bwrap is not installed (Debian, Ubuntu, Fedora: the package bubblewrap)"
    words = wrap(["true"], View(), Isolation(), 2)
    try:
        tried = subprocess.run(words, capture_output=True, text=True, timeout=TRY_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be started ({error})"
    said = [line for line in tried.stderr.splitlines() if line.startswith("bwrap:")]
    return "" if tried.returncode == 0 else (said or [f"bwrap ended with status {tried.returncode}"])[-1]
