"""The commands: which there are, and those that a domain adds to or brings.

Heavy imports stay inside the commands, and a domain is loaded only if the command names one.
"""

from __future__ import annotations

import inspect
from typing import NamedTuple

import cyclopts
from cyclopts import Group, Parameter

from openfield import __version__
from openfield.cli.help import CompactHelp
from openfield.options import COMMANDS as EXTENDED

EVALUATE = Group("Evaluate", sort_key=1)
LOOK = Group("Look at results", sort_key=2)
PREPARE = Group("Find out and prepare", sort_key=3)


class Command(NamedTuple):
    """A command: where its function is, its group, and what help says about it."""

    place: str
    group: Group
    help: str


HELP = {"--help", "-h"}
_HERE = "openfield.cli"
COMMANDS = {
    "demo": Command(
        f"{_HERE}.commands.demo:demo",
        EVALUATE,
        "See two agents meet a change in every installed domain.",
    ),
    "run": Command(
        f"{_HERE}.commands.run:run",
        EVALUATE,
        "Evaluate agents. The same command again resumes.",
    ),
    "resume": Command(
        f"{_HERE}.commands.resume:resume",
        EVALUATE,
        "Go on with a run that was stopped.",
    ),
    "serve": Command(
        f"{_HERE}.commands.serve:serve",
        EVALUATE,
        "Serve trials to agents in other programs.",
    ),
    "play": Command(
        f"{_HERE}.commands.play:play",
        EVALUATE,
        "Play a domain yourself.",
    ),
    "show": Command(
        f"{_HERE}.commands.show:show",
        LOOK,
        "Look into a run, turn by turn.",
    ),
    "report": Command(
        f"{_HERE}.commands.report:report",
        LOOK,
        "Print the numbers of runs and write the report page.",
    ),
    "objectives": Command(
        f"{_HERE}.objectives:app",
        LOOK,
        "Measure what agents did, without asking for their reward.",
    ),
    "export": Command(
        f"{_HERE}.commands.export:export",
        LOOK,
        "Write episodes or numbers as a table, or in a format of the domain.",
    ),
    "verify": Command(
        f"{_HERE}.commands.verify:verify",
        LOOK,
        "Check every part of a run file and name the damaged ones.",
    ),
    "list": Command(
        f"{_HERE}.commands.list:list_things",
        PREPARE,
        "List domains, agents, novelties, metrics, settings or options.",
    ),
    "doctor": Command(
        f"{_HERE}.commands.doctor:doctor",
        PREPARE,
        "Say which optional parts are installed, and how to add others.",
    ),
    "check": Command(
        f"{_HERE}.commands.check:check",
        PREPARE,
        "Check that a domain keeps the rules every domain must keep.",
    ),
    "generate": Command(
        f"{_HERE}.commands.generate:generate",
        PREPARE,
        "Draw trials from a description of the domain, or make more levels.",
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
        "Options of a domain: openfield run DOMAIN --help. Its commands: openfield DOMAIN\nExample: openfield demo"
    )
    for order, (name, command) in enumerate(COMMANDS.items()):
        app.command(command.place, name=name, help=command.help, group=command.group, sort_key=order)
    if words and words[0] in EXTENDED:
        _extend(app, words, help_all)
    elif words and not words[0].startswith("-") and words[0] not in app:
        _mount(app, words, help_all)
    if HELP & set(words):
        _add_example(app, words)
    return app


def name_command(app: cyclopts.App, words: list[str]) -> str:
    """Return the commands that the words begin with, each with a blank behind it."""
    return "".join(f"{name} " for name in _walk(app, words)[0])


def _new_app(name: str, help_all: bool) -> cyclopts.App:
    return cyclopts.App(
        name=name,
        version=__version__,
        group_arguments=Group("Arguments", sort_key=0),
        group_parameters=Group("Options", sort_key=4),
        default_parameter=Parameter(negative=(), show_default=False),
        help_format="plaintext",
        help_formatter=CompactHelp(help_all),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,  # it leaves without a word
    )


def _extend(app: cyclopts.App, words: list[str], help_all: bool) -> None:
    """Add the options of the domain that the words name to a command; its help is about them."""
    from openfield.cli.shared.domain_options import add_options, name_group, read_domain

    command = app[words[0]]
    domain = read_domain(command, [word for word in words if word not in HELP])
    if domain is None or command.default_command is None:
        return
    extended = add_options(command.default_command, domain, words[0])
    if extended is not command.default_command:
        command.default_command = extended
        app.help_formatter = CompactHelp(help_all, only=name_group(domain))


def _mount(app: cyclopts.App, words: list[str], help_all: bool) -> None:
    """Mount the commands of a domain under its name; a word that is neither a command nor a domain is refused."""
    from openfield.capabilities import HasCommands
    from openfield.cli.mistakes import refuse_command
    from openfield.errors import InvalidInput
    from openfield.registry import domain_names, find_domain

    name = words[0]
    if name not in domain_names() and ":" not in name and not name.endswith(".py"):
        refuse_command(name, list(COMMANDS))
    domain = find_domain(name)
    if not isinstance(domain, HasCommands):
        raise InvalidInput(f"{name} is a domain without commands of its own. Evaluate agents: openfield run {name}")
    mounted = _new_app(name, help_all)
    mounted.help = domain.title
    mounted.help_epilogue = f"Example: openfield {name} {next(iter(domain.commands))} --help"
    for each, place in domain.commands.items():
        mounted.command(place, name=each)
        if len(words) == 1 or words[1] in HELP:
            _ = mounted[each]  # loads the command, whose docstring is its help
    app.command(mounted, name=name)


def _add_example(app: cyclopts.App, words: list[str]) -> None:
    """Show the example in the docstring of a command at the end of its help."""
    command = _walk(app, words)[1]
    _, mark, text = (inspect.getdoc(command.default_command) or "").partition("Example:\n")
    if mark and command.default_command is not None:
        command.help_epilogue = f"Example: {text.strip()}"


def _walk(app: cyclopts.App, words: list[str]) -> tuple[list[str], cyclopts.App]:
    """Return the names of the commands that the words begin with, and the last of these commands."""
    names: list[str] = []
    for word in words:
        if word not in app or word.startswith("-"):
            break
        names.append(word)
        app = app[word]
    return names, app
