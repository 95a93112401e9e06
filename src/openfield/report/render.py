"""Templates to pages: the one environment of all HTML, and how pages write numbers, times and names.

The viewer, `openfield report`, `openfield publish` and studies render the same templates. A page that a server shows
links its scripts and its style sheet; one that stands alone has the style sheet inside, no script, and leads nowhere.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from openfield.console import escape_controls, say_count
from openfield.journal.reader import SCORED
from openfield.metrics.stats import format_p, format_units
from openfield.metrics.summary import AgentResults
from openfield.report import addresses, drawing
from openfield.report.figures.curves import pick_evenly
from openfield.report.words import (
    CONTROLS,
    LOOSE,
    OUTCOMES,
    count_trials,
    describe_basis,
    format_corrected,
    format_number,
    format_outcomes,
    format_sentence,
    format_trials,
    shorten_note,
)

ALL = 1_000_000
"""More scenarios than a run has."""


class Detail(msgspec.Struct, frozen=True):
    """How much of a run a page shows."""

    faint: int = 24
    """Single trials behind the mean of an agent."""
    single: int = 0
    """Single trials of an agent in a table."""
    scenarios: int = ALL
    charts: bool = True
    figures: bool = True
    """Show the figures of samples, of tasks and of domains."""


def render(template: str, data: Any, path: str = "", twin: str = "", detail: Detail = Detail()) -> str:  # noqa: B008
    """Return a page as HTML.

    Args:
        template: The name of the template.
        data: The data to show.
        path: The address of the page, if a server shows it; else it stands alone.
        twin: The address of its data as JSON.
        detail: How much of a run it shows.
    """
    return open_templates().get_template(template).render(data=data, path=path, twin=twin, detail=detail)


@cache
def open_templates() -> Environment:
    """Return the templates: everything that they are given is escaped."""
    made = Environment(
        loader=PackageLoader("openfield.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {name: getattr(addresses, name) for name in vars(addresses) if name.endswith("_address")}
    made.globals |= {name: getattr(drawing, name) for name in vars(drawing) if name.startswith("draw_")}
    made.globals |= {"style": _read_style, "pick_evenly": pick_evenly, "about_controls": CONTROLS, "about_loose": LOOSE}
    made.globals |= {"share_range": drawing.share_range, "max_overlaid": drawing.MAX_OVERLAID}
    made.filters |= FILTERS
    return made


def compile_templates() -> None:
    """Compile all templates, so that the first page need not wait for it."""
    for name in open_templates().list_templates():
        open_templates().get_template(name)


@cache
def _read_style() -> Markup:
    """Return the style sheet, for pages that carry it inside."""
    return Markup((resources.files("openfield.report") / "static" / "page.css").read_text("utf-8"))  # noqa: S704


def format_time(moment: str) -> str:
    """Return a moment of a record as a reader wants it: the day, and the time for a recent one."""
    for form in ("%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M UTC"):
        try:
            then = datetime.strptime(moment, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return f"{then:%d %b %Y, %H:%M}".lstrip("0")
    return moment


def format_seconds(seconds: float | None) -> str:
    """Return a time span in words."""
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def brief(title: str) -> str:
    """Return the title of a number, short enough for the head of a column."""
    return BRIEF.get(title, title)


def list_kinds(counts: Iterable[Mapping[str, int]]) -> list[str]:
    """Return all outcomes that occur, the good ones first."""
    found = {outcome for each in counts for outcome in each}
    return sorted(found, key=lambda outcome: (outcome not in SCORED, outcome))


def kind_of(outcome: str) -> str:
    """Return whether an outcome is `good`, `failed` or still `open`."""
    return "good" if outcome in SCORED else "open" if outcome in ("playing", "waiting", "cancelled") else "failed"


def format_group_size(group: AgentResults) -> str:
    """Return over how many trials, or people, the numbers of an agent are."""
    if group.people:
        return format_units(group.people, people=True)
    return say_count(group.trials - group.unchanged or group.trials, "trial")


def explain_outcome(outcome: str) -> str:
    """Return the meaning of an outcome."""
    return OUTCOMES.get(outcome, outcome.replace("_", " "))


def embed_data(value: Any) -> Markup:
    """Return data as JSON inside a page, for its script: nothing in it can end the element that it stands in."""
    text = msgspec.json.encode(value).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


BRIEF = {
    "Performance before the onset": "Before",
    "Performance in the test": "In the test",
    "Performance after the onset": "After",
    "Change at the onset": "Change",
    "Correct detection": "Correct",
    "Delay of detection": "Delay",
    "Any false alarm": "False alarm",
}
"""Short names of the numbers that are shown first."""
FILTERS: dict[str, Any] = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "basis": describe_basis,
    "brief": brief,
    "corrected": format_corrected,
    "count": say_count,
    "embed": embed_data,
    "kind": kind_of,
    "kinds": list_kinds,
    "meaning": explain_outcome,
    "moment": format_time,
    "number": format_number,
    "outcomes": format_outcomes,
    "own_trials": count_trials,
    "p_value": format_p,
    "plain": escape_controls,
    "sentence": format_sentence,
    "shorten": shorten_note,
    "span": format_seconds,
    "trials": format_group_size,
    "all_trials": format_trials,
    "units": format_units,
}
