"""Run a command: every mistake of the user becomes one line on standard error and exit status 2."""

from __future__ import annotations

import difflib
import errno
import io
import os
import re
import sys
import warnings
from typing import Any, Literal, get_args, get_origin

import cyclopts

from openfield.cli.app import HELP_ALL, join_command, make_command_line
from openfield.console import escape_controls
from openfield.errors import MORE_MEMORY, NO_HANDLES, DiskFull, OpenfieldError, UnknownName, too_many_files

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
KINDS: dict[Any, str] = {int: "a whole number", float: "a number"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""What Gymnasium puts around its warnings."""


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
        return _print_error("The current directory does not exist any more. Go to another one: cd", 2)
    if empty := _find_empty(words):
        command = join_command(make_command_line([]), words)
        return _print_error(
            f"{empty} is empty. Is a variable of your shell not set? Help: openfield {command}--help", 2
        )
    for word in words:
        if (shown := word.encode(errors="backslashreplace").decode()) != word:
            return _print_error(f"'{shown}' is not text in UTF-8, which names and values must be.", 2)
    return _run_command(words)


def _run_command(words: list[str]) -> int:
    if words[:1] == ["help"]:  # `openfield help COMMAND` is how git and cargo are asked
        words = [*words[1:], "--help"]
    plain = ["--help" if word == HELP_ALL else word for word in words] or ["--help"]
    try:
        app = make_command_line(plain, help_all=HELP_ALL in words)
        app(plain, result_action="return_value")
        print(end="", flush=True)  # a pipe that is closed is noticed here, not by a traceback at exit
    except cyclopts.CycloptsError as error:
        return _print_error(f"{explain_usage(error)} Help: openfield {join_command(app, words)}--help", 2)
    except OpenfieldError as error:
        return _print_error(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _print_error("Interrupted.", 130)
    except BrokenPipeError:  # the reader of the pipe we print to has gone, such as `head`
        sys.stderr.close()
        return 0
    except SystemExit as left:  # what Rich makes of the same
        if not isinstance(left.__context__, BrokenPipeError):
            raise
    except MemoryError:
        return _print_error(f"There is not enough memory for this. {MORE_MEMORY}", 2)
    except OSError as error:
        if error.errno in NO_HANDLES:
            return _print_error(str(too_many_files()), 2)
        if error.errno not in NO_ROOM:
            raise
        return _print_error(f"No room left for {error.filename or 'the output'}.", DiskFull.exit_status)
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


def _print_error(message: str, status: int) -> int:
    print(f"openfield: {escape_controls(_COLOUR.sub('', str(message)))}", file=sys.stderr)
    return status


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"openfield: {escape_controls(_COLOUR.sub('', str(message)))}", file=sys.stderr)


def explain_usage(error: cyclopts.CycloptsError) -> str:
    """Explain the error in the words of a command, in one sentence or two."""
    match error:
        case cyclopts.UnknownOptionError():
            word = (error.token.keyword or error.token.value).partition("=")[0]
            known = [name for argument in error.argument_collection if argument.parse for name in argument.names]
            return f"Unknown option '{word}'.{_suggest(word, known)}"
        case cyclopts.UnknownCommandError() if error.unused_tokens and error.app is not None:
            word, names = error.unused_tokens[0], [*error.app, HELP_ALL]
            if word.startswith("-"):
                return f"Unknown option '{word}'.{_suggest(word, [name for name in names if name.startswith('-')])}"
            return str(UnknownName("command", word, {name for name in names if name[0] != "-"}, label="Commands"))
        case cyclopts.UnusedCliTokensError():
            return f"There is a word too many: '{(error.unused_tokens or [''])[0]}'."
        case cyclopts.RepeatArgumentError():
            return f"{error.token.keyword} is given more than once."
        case cyclopts.MissingArgumentError() if error.argument is not None:
            return f"{error.keyword} needs a value." if error.keyword else f"{_label(error)} is missing."
        case cyclopts.CoercionError() if error.token is not None:
            return _explain_value(error, error.token.value)
        case cyclopts.ValidationError() if error.argument is not None:
            return f"{_label(error)} cannot be {error.argument.value}. {error.exception_message}"
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _explain_value(error: cyclopts.CoercionError, value: str) -> str:
    """Explain which values an option takes instead of this one."""
    kind = error.target_type
    if get_origin(kind) is Literal:
        choices = [str(choice) for choice in get_args(kind)]
        return f"{_label(error)} is one of {', '.join(choices)}, not '{value}'.{_suggest(value, choices)}"
    if kind not in KINDS and error.msg is not None:
        return f"{_label(error)} takes {error.msg}, not '{value}'."
    return f"{_label(error)} takes {KINDS.get(kind, 'another value')}, not '{value}'."


def _label(error: cyclopts.CycloptsError) -> str:
    """Return the option as it was typed, or the word of the help that a value stands for."""
    argument = error.argument
    if argument is None:
        return "A value"
    typed = next((token.keyword for token in argument.tokens if token.keyword), None)
    if typed is None and argument.field_info.is_positional:
        return argument.name.lstrip("-").upper()
    return typed or argument.name


def _suggest(word: str, known: list[str]) -> str:
    """Suggest the known word that is nearest; the dashes of options do not count as letters in common."""
    letters = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(word.lstrip("-"), letters, n=1)
    return f" Did you mean '{letters[near[0]]}'?" if near else ""
