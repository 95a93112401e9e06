"""The command line: one file per command, verb first; heavy imports stay inside the commands.

Everything a command does is a few calls into the package; every mistake of the user is one line and exit status 2.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings

import cyclopts

from openfield import __version__
from openfield.errors import DiskFull, OpenfieldError
from openfield.options import COMMANDS as FLAGGED

app = cyclopts.App(
    name="openfield",
    help="Tells you what your agent does when its world changes.",
    version=__version__,
    help_epilogue="New here? Try: openfield demo",
    default_parameter=cyclopts.Parameter(negative=()),
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,  # it leaves without a word
)
OND = "openfield.domains.ond.commands"
COMMANDS = {
    "demo": ("demo:demo", "See what openfield does: two agents meet a change in every installed domain."),
    "list": ("list:list_things", "List domains, agents, novelties, metrics, or a domain's settings and flags."),
    "doctor": ("doctor:doctor", "Say which optional parts are there, and how to install the missing ones."),
    "run": ("run:run", "Evaluate agents. The same command again resumes."),
    "resume": ("resume:resume", "Go on with a run that was stopped."),
    "serve": ("serve:serve", "Serve trials to agents in other programs."),
    "play": ("play:play", "Play a domain yourself."),
    "generate": ("generate:generate", "Draw trials from a domain's own description of them."),
    "show": ("show:show", "Look into a run, turn by turn."),
    "report": ("report:report", "Show what runs say, and write the page."),
    "objectives": ("objectives:app", "Say what agents did, without asking for their reward."),
    "score": (f"{OND}.score:score", "Score open-set results that lie on disk."),
    "merge": (
        f"{OND}.merge:merge",
        "Join files of features that agents of the original OND client left.",
    ),
    "export": ("export:export", "Write all episodes as a table, or what a domain offers beside."),
    "verify": ("verify:verify", "Check every part of a run file and name the damaged ones."),
    "check": ("check:check", "Run the conformance kit on a domain."),
}
HELP = {"--help", "-h"}
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DOMAIN_HELP = "Domains have options of their own: openfield {} DOMAIN --help"
for order, (name, (place, help_text)) in enumerate(COMMANDS.items()):
    more = {"help_epilogue": DOMAIN_HELP.format(name)} if name in FLAGGED else {}
    app.command(
        place if place.startswith("openfield.") else f"openfield.cli.{place}",
        name=name,
        help=help_text,
        sort_key=order,
        **more,
    )


def main(words: list[str] | None = None) -> None:
    """Runs a command and leaves with its exit status."""
    sys.exit(run_command(sys.argv[1:] if words is None else words))


def run_command(words: list[str]) -> int:
    """Runs a command; what went wrong is said in one line on standard error."""
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):  # a terminal that has no dash shows a question mark, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if not _is_somewhere():
        return _complain("The current directory is not there any more. Go to one that is: cd", 2)
    if empty := _find_empty(words):
        hint = "is a variable of your shell not set?"
        return _complain(f"{empty} is empty; {hint} Help: openfield {_help_for(words)}--help", 2)
    return _obey(words)


def _obey(words: list[str]) -> int:
    try:
        app(words or ["--help"], result_action="return_value")
        if words and words[0] in FLAGGED and HELP & set(words):
            _print_domain_help(words[0], next((word for word in words[1:] if word not in HELP), "-"))
        print(end="", flush=True)  # whoever cannot be told the end of it is told now, and not by a traceback at exit
    except cyclopts.CycloptsError as error:
        return _complain(f"{_sentence(error)} Help: openfield {_help_for(words)}--help", 2)
    except OpenfieldError as error:
        return _complain(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _complain("Interrupted.", 130)
    except BrokenPipeError:  # somebody closed the pipe we print to, such as `head`
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
    """What is given an empty value, which no command takes: left alone it would mean the default."""
    for before, word in zip(["", *words], words, strict=False):
        name, sign, value = word.partition("=")
        if not word:
            return before if before.startswith("-") else "A word"
        if sign and not value and name.startswith("-"):
            return name
    return ""


def _is_somewhere() -> bool:
    """Whether there is a current directory; agents, domains and files are looked for in it."""
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def _print_domain_help(command: str, domain: str) -> None:
    """Shows the flags of the domain that help was asked for, below those of the command."""
    from openfield.cli.list import print_flags

    if not domain.startswith("-") and not domain.endswith(".toml"):
        print_flags(domain, command)


def _complain(message: str, status: int) -> int:
    print(f"openfield: {message}", file=sys.stderr)
    return status


def _sentence(error: cyclopts.CycloptsError) -> str:
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _help_for(words: list[str]) -> str:
    """The command the words begin with, and the command of that, if there is one."""
    names, place = "", app
    for word in words:
        if word not in place:
            break
        names, place = f"{names}{word} ", place[word]
    return names


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"openfield: {message}", file=sys.stderr)
