"""Run a command: every mistake of the user becomes one line on standard error and exit status 2."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings

import cyclopts

from openfield.cli.app import make_app, name_command
from openfield.cli.help import HELP_ALL
from openfield.cli.mistakes import explain
from openfield.errors import DiskFull, OpenfieldError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(words: list[str] | None = None) -> None:
    """Run a command and leave with its exit status."""
    sys.exit(run_command(sys.argv[1:] if words is None else words))


def run_command(words: list[str]) -> int:
    """Run a command and return its exit status; a mistake is explained in one line on standard error."""
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):  # a terminal that has no dash shows a question mark, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if not _has_directory():
        return _complain("The current directory does not exist any more. Go to another one: cd", 2)
    if empty := _find_empty(words):
        command = name_command(make_app([]), words)
        return _complain(f"{empty} is empty. Is a variable of your shell not set? Help: openfield {command}--help", 2)
    return _obey(words)


def _obey(words: list[str]) -> int:
    plain = ["--help" if word == HELP_ALL else word for word in words] or ["--help"]
    try:
        app = make_app(plain, help_all=HELP_ALL in words)
        app(plain, result_action="return_value")
        print(end="", flush=True)  # a pipe that is closed is noticed here, not by a traceback at exit
    except cyclopts.CycloptsError as error:
        return _complain(f"{explain(error)} Help: openfield {name_command(app, words)}--help", 2)
    except OpenfieldError as error:
        return _complain(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _complain("Interrupted.", 130)
    except BrokenPipeError:  # the reader of the pipe we print to has gone, such as `head`
        sys.stderr.close()
        return 0
    except SystemExit as left:  # what Rich makes of the same
        if not isinstance(left.__context__, BrokenPipeError):
            raise
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        return _complain(f"No room left for {error.filename or 'what is printed'}.", DiskFull.exit_status)
    return 0


def _find_empty(words: list[str]) -> str:
    """Name the word or option with an empty value; no command takes one, and it would silently mean the default."""
    for before, word in zip(["", *words], words, strict=False):
        name, sign, value = word.partition("=")
        if not word:
            return before if before.startswith("-") else "A word"
        if sign and not value and name.startswith("-"):
            return name
    return ""


def _has_directory() -> bool:
    """Return whether the current directory exists; agents, domains and files are looked for in it."""
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def _complain(message: str, status: int) -> int:
    print(f"openfield: {message}", file=sys.stderr)
    return status


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"openfield: {message}", file=sys.stderr)
