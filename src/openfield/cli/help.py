"""The layout of help: groups without boxes, one line for a short option, rare options only with `--help-all`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfield.options import MORE

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

HELP_ALL = "--help-all"
MAX_NAMES = 30
"""Columns for the names of options; longer names have a line of their own."""


class CompactHelp:
    """Prints a group of options as a title and a plain table."""

    def __init__(self, help_all: bool) -> None:
        self._help_all = help_all

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print one group; the group of rare options only if all of them were asked for."""
        from rich.table import Table
        from rich.text import Text

        entries = [entry for entry in panel.entries if not entry.names or entry.names[0] not in ("--help", "--version")]
        if not entries:
            return
        if panel.title == MORE and not self._help_all:
            console.print(Text(f"{MORE}: {HELP_ALL}", style="bold"))
            return
        console.print(Text(f"{panel.title}:", style="bold"))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        names = [label_entry(entry) for entry in entries]
        table.add_column(width=2)
        table.add_column(width=min(MAX_NAMES, max(map(len, names))), overflow="fold")
        table.add_column(overflow="fold")
        for name, entry in zip(names, entries, strict=True):
            table.add_row("", Text(name, style="cyan"), _describe(entry))
        console.print(table)

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print how the command is typed."""
        console.print(f"Usage: {usage}", highlight=False, markup=False, end="")


def label_entry(entry: HelpEntry) -> str:
    """Return the names of an option, short ones first, and what its value stands for."""
    names = [entry.positional_label] if entry.positional_label else [*entry.shorts, *entry.names]
    return ", ".join(str(name) for name in names) + (
        f" {entry.metavar}" if entry.metavar and not entry.positional_label else ""
    )


def _describe(entry: HelpEntry) -> Any:
    if entry.choices:
        from rich.text import Text

        entry.description.append(Text(f" One of {', '.join(entry.choices)}."))
    return entry.description
