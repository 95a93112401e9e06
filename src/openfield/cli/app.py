"""The commands: which there are, and those that a domain adds to or brings.

Heavy imports stay inside the commands, and a domain is loaded only if the command names one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cyclopts
from cyclopts import Group, Parameter

from openfield import __version__
from openfield.cli.help import HELP_ALL, CompactHelp
from openfield.options import COMMANDS as EXTENDED

__all__ = ["HELP_ALL", "make_app", "name_command"]

EVALUATE = Group("Evaluate", sort_key=1)
LOOK = Group("Look at results", sort_key=2)
PREPARE = Group("Find out and prepare", sort_key=3)


class Command(NamedTuple):
    """A command: the function behind it, its group, what help says about it, and how it is used."""

    place: str
    group: Group
    help: str
    example: str


_HERE = "openfield.cli"
COMMANDS = {
    "demo": Command(
        f"{_HERE}.commands.demo:demo",
        EVALUATE,
        "See what openfield does: two agents meet a change in every installed domain.",
        "openfield demo doom --trials 3",
    ),
    "run": Command(
        f"{_HERE}.commands.run:run",
        EVALUATE,
        "Evaluate agents. The same command again resumes.",
        "openfield run birds -a planner -a mine.py:Agent --novelty gravity:hard",
    ),
    "resume": Command(
        f"{_HERE}.commands.resume:resume",
        EVALUATE,
        "Go on with a run that was stopped.",
        "openfield resume runs/birds.sqlite",
    ),
    "serve": Command(
        f"{_HERE}.commands.serve:serve",
        EVALUATE,
        "Serve trials to agents in other programs.",
        "openfield serve birds --trials 10 -o runs/served.sqlite",
    ),
    "play": Command(
        f"{_HERE}.commands.play:play",
        EVALUATE,
        "Play a domain yourself.",
        "openfield play commai --set tasks=micro1",
    ),
    "show": Command(
        f"{_HERE}.commands.show:show",
        LOOK,
        "Look into a run, turn by turn.",
        "openfield show runs/birds.sqlite --cell 3f --turn 12",
    ),
    "report": Command(
        f"{_HERE}.commands.report:report",
        LOOK,
        "Print the numbers of runs and write the report page.",
        "openfield report runs/birds.sqlite --baseline naive",
    ),
    "objectives": Command(
        f"{_HERE}.objectives:app",
        LOOK,
        "Measure what agents did, without asking for their reward.",
        "",
    ),
    "export": Command(
        f"{_HERE}.commands.export:export",
        LOOK,
        "Write episodes or numbers as a table, or another format of the domain.",
        "openfield export runs/birds.sqlite --format parquet",
    ),
    "verify": Command(
        f"{_HERE}.commands.verify:verify",
        LOOK,
        "Check every part of a run file and name the damaged ones.",
        "openfield verify runs/birds.sqlite",
    ),
    "list": Command(
        f"{_HERE}.commands.list:list_things",
        PREPARE,
        "List domains, agents, novelties, metrics, or a domain's settings and options.",
        "openfield list novelties birds",
    ),
    "doctor": Command(
        f"{_HERE}.commands.doctor:doctor",
        PREPARE,
        "Say which optional parts are installed, and how to install the others.",
        "openfield doctor",
    ),
    "check": Command(
        f"{_HERE}.commands.check:check",
        PREPARE,
        "Check that a domain keeps the rules every domain must keep.",
        "openfield check mine.py:MAZE",
    ),
    "generate": Command(
        f"{_HERE}.commands.generate:generate",
        PREPARE,
        "Draw trials from a description of the domain, or make more levels.",
        "openfield generate birds configMeta.xml -o config.xml",
    ),
}


def make_app(words: list[str], help_all: bool = False) -> cyclopts.App:
    """Return the application for these words: with the options, or the commands, of the domain they name.

    Raises:
        UnknownName: The words name a domain or a command that does not exist.
    """
    app = _new_app("openfield", help_all)
    app.help = "Tells you what your agent does when its world changes."
    app.help_epilogue = (
        "Domains have options and commands of their own: openfield run DOMAIN --help, openfield DOMAIN --help\n\n"
        "New here? Try: openfield demo"
    )
    for order, (name, command) in enumerate(COMMANDS.items()):
        more: dict[str, Any] = {"help_epilogue": f"Example: {command.example}"} if command.example else {}
        app.command(command.place, name=name, help=command.help, group=command.group, sort_key=order, **more)
    if words and words[0] in EXTENDED:
        _extend(app, words[0], words)
    elif words and not words[0].startswith("-") and words[0] not in app:
        _mount(app, words[0], help_all)
    return app


def name_command(words: list[str]) -> str:
    """Return the command the words begin with, with a blank behind it; its help is named in messages."""
    return f"{words[0]} " if words and words[0] in COMMANDS else ""


def _new_app(name: str, help_all: bool) -> cyclopts.App:
    return cyclopts.App(
        name=name,
        version=__version__,
        group_arguments=Group("Arguments", sort_key=0),
        group_parameters=Group("Options", sort_key=4),
        default_parameter=Parameter(negative=(), show_default=False),
        help_formatter=CompactHelp(help_all),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,  # it leaves without a word
    )


def _extend(app: cyclopts.App, name: str, words: list[str]) -> None:
    """Add the options of the domain that the words name to a command."""
    from openfield.cli.shared.domain_options import add_options, read_domain

    command = app[name]
    bare = [word for word in words[1:] if word not in ("--help", "-h")]
    domain = read_domain(command, name, bare)
    if domain is not None and command.default_command is not None:
        command.default_command = add_options(command.default_command, domain, name)


def _mount(app: cyclopts.App, name: str, help_all: bool) -> None:
    """Mount the commands of a domain under its name; a word that is neither a command nor a domain is refused."""
    from openfield.capabilities import HasCommands
    from openfield.cli.mistakes import refuse_command
    from openfield.errors import InvalidInput
    from openfield.registry import domain_names, find_domain

    if name not in domain_names() and ":" not in name and not name.endswith(".py"):
        refuse_command(name, list(COMMANDS))
    domain = find_domain(name)
    if not isinstance(domain, HasCommands):
        raise InvalidInput(f"{name} is a domain without commands of its own. Evaluate agents: openfield run {name}")
    mounted = _new_app(domain.name, help_all)
    mounted.help = domain.title
    mounted.help_epilogue = f"Example: openfield {domain.name} {next(iter(domain.commands))} --help"
    for each, place in domain.commands.items():
        mounted.command(place, name=each)
    app.command(mounted, name=name)
