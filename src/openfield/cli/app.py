"""The commands: which there are, and those that a domain adds to or brings.

Heavy imports stay inside the commands, and a domain is loaded only if the command names one.
"""

from __future__ import annotations

import inspect

import cyclopts
from cyclopts import Group, Parameter

from openfield import __version__
from openfield.cli.help import CompactHelp
from openfield.options import COMMANDS as EXTENDED

GROUPS = {
    "Evaluate": {
        "demo": "See two agents meet a change in every installed domain.",
        "run": "Evaluate agents. The same command again resumes.",
        "resume": "Go on with a run that was stopped.",
        "serve": "Serve trials to agents in other programs.",
        "play": "Play a domain yourself.",
    },
    "Look at results": {
        "show": "Look into a run, turn by turn.",
        "report": "Print the numbers of runs and write the report page.",
        "objectives": "Measure what agents did, without asking for their reward.",
        "export": "Write episodes or numbers as a table, or in a format of the domain.",
        "verify": "Check every part of a run file and name the damaged ones.",
    },
    "Find out and prepare": {
        "list": "List domains, agents, novelties, metrics, settings or options.",
        "doctor": "Say which optional parts are installed, and how to add others.",
        "check": "Check that a domain keeps the rules every domain must keep.",
        "generate": "Draw trials from a description of the domain, or make more levels.",
    },
}
"""The commands by group, each with what help says about it; its function is in the module of its name."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
ELSEWHERE = {"objectives": "openfield.cli.objectives:app", "list": "openfield.cli.commands.list:list_things"}
HELP = {"--help", "-h"}


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
    for order, (title, commands) in enumerate(GROUPS.items()):
        group = Group(title, sort_key=order)
        for name, text in commands.items():
            place = ELSEWHERE.get(name, f"openfield.cli.commands.{name}:{name}")
            app.command(place, name=name, help=text, group=group, sort_key=list(COMMANDS).index(name))
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
