"""How pages write numbers, times and names: the filters of the templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from markupsafe import Markup

from openfield.console import escape_controls, say_count
from openfield.journal.reader import SCORED
from openfield.metrics.stats import say_p, say_units
from openfield.metrics.summary import AgentResults
from openfield.report.words import OUTCOMES, count_trials, describe_basis, say_corrected, shorten_note


def say_number(value: float | None, digits: int = 2) -> str:
    """Return a number with its decimals and a proper minus sign; a dash if there is none."""
    return "–" if value is None else f"{value:z,.{digits}f}".replace("-", "−")


def say_time(moment: str) -> str:
    """Return a moment of a record as a reader wants it: the day, and the time for a recent one."""
    for form in ("%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M UTC"):
        try:
            then = datetime.strptime(moment, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return f"{then:%d %b %Y, %H:%M}".lstrip("0")
    return moment


def say_seconds(seconds: float | None) -> str:
    """Return a time span in words."""
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def say_sentence(text: str) -> str:
    """Return a text as a sentence: with a capital and a full stop."""
    return text and text[0].upper() + text[1:].rstrip(".") + "."


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


def say_group(group: AgentResults) -> str:
    """Return over how many trials, or people, the numbers of an agent are."""
    if group.people:
        return say_units(group.people, people=True)
    return say_count(group.trials - group.unchanged or group.trials, "trial")


def explain_outcome(outcome: str) -> str:
    """Return what an outcome means."""
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
    "basis": describe_basis,
    "brief": brief,
    "corrected": say_corrected,
    "count": say_count,
    "embed": embed_data,
    "kind": kind_of,
    "kinds": list_kinds,
    "meaning": explain_outcome,
    "moment": say_time,
    "number": say_number,
    "own_trials": count_trials,
    "p_value": say_p,
    "plain": escape_controls,
    "sentence": say_sentence,
    "shorten": shorten_note,
    "span": say_seconds,
    "trials": say_group,
    "units": say_units,
}
