"""The commands: which there are, and those that a domain adds to or brings.

Heavy imports stay inside the commands, and a domain is loaded only if the command names one.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import cyclopts
from cyclopts import Group, Parameter

from openfield import __version__
from openfield.options import COMMANDS as EXTENDED
from openfield.options import MORE

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

RARE = "More commands"
"""The group of commands of which help says only the names, unless all is asked for."""
GROUPS = {
    "Evaluate": {
        "demo": "See two agents meet a change in every installed domain.",
        "run": "Evaluate agents. The same command again resumes.",
        "resume": "Go on with a run that was stopped.",
        "serve": "Serve trials to agents in other programs.",
        "play": "Play yourself: would you notice the change?",
    },
    "Look at results": {
        "view": "Look at runs in the browser, live and afterwards.",
        "watch": "Follow a run from another terminal.",
        "show": "Look into a run, turn by turn.",
        "report": "Print the numbers of runs and write the report page.",
        "compare": "Compare two agents, or the agents of two run files.",
        "figure": "Draw a figure for a paper: PDF, SVG or PNG.",
        "objectives": "Measure what agents did, without asking for their reward.",
        "score": "Compare detectors of unknown samples, on arrays or score files.",
        "export": "Write episodes or numbers as tables, for programs and papers.",
        "publish": "Write a static site about runs, with a leaderboard.",
        "verify": "Check every part of a run file and name the damaged ones.",
    },
    "Find out and prepare": {
        "list": "List domains, agents, novelties, settings, runs and more.",
        "doctor": "Say which optional parts are installed, and how to add others.",
        "check": "Check that a domain keeps the rules every domain must keep.",
    },
    RARE: {
        "plan": "Say how many trials a difference needs, and what they take.",
        "slurm": "Play an experiment as a SLURM job array.",
        "merge": "Join run files into one.",
        "detect": "Score detectors of change on a stream of numbers.",
        "completion": "Print what completes commands and options in bash, zsh or fish.",
    },
}
"""The commands by group, each with what help says about it; its function is in the module of its name."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
PLACES = {"Look at results": "openfield.cli.results"}
"""The package of a group's commands where it is not `openfield.cli.commands`."""
ELSEWHERE = {
    "compare": "openfield.cli.results.compare:print_comparison",
    "objectives": "openfield.cli.objectives:app",
    "list": "openfield.cli.commands.list:list_things",
    "merge": "openfield.cli.results.merge:merge",
    "detect": "openfield.cli.results.detect:detect",
}
HELP = {"--help", "-h"}
HELP_ALL = "--help-all"
ALWAYS_THERE = {"--help", "--version"}
MAX_NAMES = 30
"""Columns for the names of options; longer names are folded."""


def make_command_line(words: list[str], help_all: bool = False) -> cyclopts.App:
    """Return the application for these words: with the options, or the commands, of the domain they name."""
    app = _new_app("openfield", help_all)
    app.help = "Tells you what your agent does when its world changes."
    app.help_epilogue = (
        "Options of a domain: openfield run DOMAIN --help. Its commands: openfield DOMAIN\nExample: openfield demo"
    )
    for order, (title, commands) in enumerate(GROUPS.items()):
        group, package = Group(title, sort_key=order), PLACES.get(title, "openfield.cli.commands")
        for name, text in commands.items():
            place = ELSEWHERE.get(name, f"{package}.{name}:{name}")
            app.command(place, name=name, help=text, group=group, sort_key=list(COMMANDS).index(name))
    if words and words[0] in EXTENDED:
        _extend(app, words, help_all)
    elif words and not words[0].startswith("-") and words[0] not in app:
        _mount(app, words, help_all)
    if HELP & set(words):
        _add_example(app, words)
    return app


def join_command(app: cyclopts.App, words: list[str]) -> str:
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
    from openfield.cli.shared.domain_options import add_options, find_options, name_group, read_target

    command = app[words[0]]
    target = read_target(command, [word for word in words if word not in HELP])
    if target is None or command.default_command is None:
        return
    known = target.domain if len(target.domains) == 1 else None
    command.default_command = add_options(command.default_command, known, words[0], target=target)
    if known is not None and find_options(known, words[0]) is not None:
        app.help_formatter = CompactHelp(help_all, only=name_group(known))


def _mount(app: cyclopts.App, words: list[str], help_all: bool) -> None:
    """Mount the commands of a domain under its name; a word that is neither a command nor a domain is refused.

    A command of an installed domain is named with the domain.
    """
    from openfield.errors import InvalidInput, UnknownName
    from openfield.registry import domain_names, find_domain, installed_domains

    name = words[0]
    if name not in domain_names() and ":" not in name and not name.endswith(".py"):
        owners = [each.name for each in installed_domains() if name in each.commands]
        if owners:
            raise InvalidInput(f"'{name}' is a command of {owners[0]}: openfield {owners[0]} {name} --help")
        raise UnknownName("command", name, [*COMMANDS, *domain_names()], label="Commands and domains")
    domain = find_domain(name)
    if not domain.commands:
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


class CompactHelp:
    """Prints a group of options as a title and a plain table."""

    def __init__(self, help_all: bool, only: str = "") -> None:
        """Show rare options with `help_all`; without it show only one group, if one is named."""
        self._help_all = help_all
        self._only = only

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print one group, or a line that says how to see the options that are left out."""
        from rich.table import Table
        from rich.text import Text

        entries = [entry for entry in panel.entries if not ALWAYS_THERE & set(entry.names)]
        if not entries or (self._only and not self._help_all and panel.title != self._only):
            return
        if panel.title == RARE and not self._help_all:
            console.print(Text(f"{RARE}: {', '.join(map(label_entry, entries))} ({HELP_ALL})", style="bold"))
            return
        if panel.title == MORE and not self._help_all:
            console.print(Text(f"More options: {HELP_ALL}", style="bold"))
            return
        console.print(Text(f"{panel.title}:", style="bold"))
        names = [label_entry(entry) for entry in entries]
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(width=0)
        table.add_column(width=min(MAX_NAMES, max(map(len, names))), overflow="fold")
        table.add_column(overflow="fold")
        for name, entry in zip(names, entries, strict=True):
            table.add_row("", Text(name, style="cyan"), Text(_describe(entry)))
        console.print(table)
        if self._only and not self._help_all:
            console.print(Text(f"All options: {HELP_ALL}", style="bold"))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print how the command is typed."""
        console.print(f"Usage: {usage}", highlight=False, markup=False)


def label_entry(entry: HelpEntry) -> str:
    """Return the names of an option, short ones first, and a word for its value."""
    if entry.positional_label:
        return entry.positional_label
    return ", ".join([*entry.shorts, *entry.names]) + (f" {entry.metavar}" if entry.metavar else "")


def _describe(entry: HelpEntry) -> str:
    text = " ".join(str(getattr(entry.description, "primary_renderable", entry.description)).replace("`", "").split())
    return f"{text} One of {', '.join(entry.choices)}." if entry.choices else text
