"""The layout of help: groups of options without boxes, and rare options only with `--help-all`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfield.options import MORE

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

HELP_ALL = "--help-all"
ALWAYS_THERE = {"--help", "--version"}
MAX_NAMES = 30
"""Columns for the names of options; longer names are folded."""


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
    """Return the names of an option, short ones first, and what its value stands for."""
    if entry.positional_label:
        return entry.positional_label
    return ", ".join([*entry.shorts, *entry.names]) + (f" {entry.metavar}" if entry.metavar else "")


def _describe(entry: HelpEntry) -> str:
    text = " ".join(str(getattr(entry.description, "primary_renderable", entry.description)).replace("`", "").split())
    return f"{text} One of {', '.join(entry.choices)}." if entry.choices else text
