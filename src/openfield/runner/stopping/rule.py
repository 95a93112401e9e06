"""The rule by which a run stops by itself, as it is written and as the run file keeps it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
from cyclopts import Parameter

from openfield.errors import DamagedRun, InvalidInput
from openfield.options import MORE, Options

DECIDED = "decided"
BATCH = 5
"""Trials that change in a batch by default."""
MAX_TRIALS = 100
"""Trials that change at most by default."""
FORM = "'decided', 'AGENT - AGENT: width < 0.1' or 'AGENT: NUMBER width < 0.1'"


class Aim(NamedTuple):
    """A width that an interval is to have: of one number of an agent, or of the difference of two agents."""

    first: str
    second: str
    """The other agent; empty for a number of one."""
    number: str
    """The name of the number; empty for a difference."""
    width: float


class StoppingRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When a run stops by itself."""

    until: str = ""
    """What is to be known, as it was written; empty if only settled agents are taken out."""
    negligible: float = 0.0
    """A difference up to which two agents count as equal."""
    race: bool = False
    """Whether an agent that is settled against all others is played no further."""
    most: int = 0
    """How many trials are played at most: those of a novelty that change, or all that a program gave."""
    batches: dict[str, int] = {}
    """Domain -> how many trials of a batch change."""

    @property
    def aim(self) -> Aim | None:
        """The width that is aimed at, if that is what the rule asks for."""
        return parse_aim(self.until) if self.until and self.until != DECIDED else None

    @property
    def words(self) -> str:
        """The rule in the words of the command line."""
        parts = [f"--until '{self.until}'"] if self.until else []
        parts += [f"--negligible {self.negligible:g}"] if self.negligible else []
        return " ".join(parts + ["--race"] * self.race)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StoppingOptions(Options):
    """When a run stops by itself."""

    until: Annotated[str, Parameter(group=MORE, metavar="RULE")] = ""
    """Play batches of trials until this is known: `decided` (each agent against the baseline), `'planner - naive: width
    < 0.1'` or `'planner: concordance width < 0.1'`."""
    negligible: Annotated[float, Parameter(group=MORE, metavar="DIFFERENCE")] = 0.0
    """With --until decided or --race: agents that differ by no more than this count as equal [0]."""
    race: Annotated[bool, Parameter(group=MORE)] = False
    """Stop playing agents that are settled against all others."""

    def __post_init__(self) -> None:
        """Refuse rules that mean nothing, wherever they come from."""
        if self.until and self.until != DECIDED:
            parse_aim(self.until)
        if not 0 <= self.negligible < 1:
            raise InvalidInput(f"negligible must be at least 0 and below 1, not {self.negligible!r}.")
        if self.negligible and self.until != DECIDED and not self.race:
            raise InvalidInput("--negligible says when two agents count as equal: add --until decided or --race.")

    @property
    def stops(self) -> bool:
        """Whether the run stops by itself."""
        return bool(self.until) or self.race

    def make_rule(self, batches: Mapping[str, int], most: int) -> StoppingRule | None:
        """Return the rule, if there is one.

        Args:
            batches: How many trials of a batch change, by domain.
            most: How many trials are played at most.
        """
        if not self.stops:
            return None
        negligible = float(self.negligible)
        return StoppingRule(until=self.until, negligible=negligible, race=self.race, most=most, batches=dict(batches))


def parse_aim(text: str) -> Aim:
    """Read a rule about a width.

    Raises:
        InvalidInput: It is not a rule, or its width is one that no interval has.
    """
    found = re.fullmatch(r"(?P<who>.+):\s*(?:(?P<number>\w+)\s+)?width\s*<\s*(?P<width>[\d.eE+-]+)\s*", text)
    agents = [name.strip() for name in found["who"].split(" - ")] if found else []
    if found is None or not 1 <= len(agents) <= 2 or not all(agents) or (len(agents) == 1) is (found["number"] is None):
        raise InvalidInput(f"--until takes {FORM}, not '{text}'.")
    try:
        width = float(found["width"])
    except ValueError:
        raise InvalidInput(f"--until '{text}': '{found['width']}' is not a number.") from None
    if not 0 < width < float("inf"):
        raise InvalidInput(f"--until '{text}' can never be met: an interval is wider than {width:g}.")
    return Aim(agents[0], agents[1] if len(agents) == 2 else "", found["number"] or "", width)


def join_rules(rules: Sequence[StoppingRule | None]) -> StoppingRule | None:
    """Return the rule of several domains that are played in one run, which differs only in the sizes of batches."""
    kept = [rule for rule in rules if rule is not None]
    batches = {domain: size for rule in kept for domain, size in rule.batches.items()}
    return msgspec.structs.replace(kept[0], batches=batches) if kept else None


def read_rule(facts: Mapping[str, str]) -> StoppingRule | None:
    """Return the rule that a run file keeps; None if the run does not stop by itself."""
    from openfield.journal.schema import RULE_FACT  # help loads this module, and no database

    try:
        return msgspec.json.decode(facts[RULE_FACT], type=StoppingRule) if RULE_FACT in facts else None
    except msgspec.DecodeError as error:
        raise DamagedRun(f"The run file is damaged: its stopping rule cannot be read: {error}.") from None


def check_rule(path: object, facts: Mapping[str, str], rule: StoppingRule | None) -> None:
    """Check that a run goes on with the rule that it was begun with: another one would be chosen by what is known.

    Args:
        path: The run file.
        facts: What it keeps.
        rule: The rule now.

    Raises:
        InvalidInput: It is another rule.
    """
    kept = read_rule(facts)
    if kept == rule:
        return
    if kept is None or rule is None or kept.words != rule.words:
        begun = "without a stopping rule" if kept is None else f"with {kept.words}"
    else:
        begun = f"with batches of {', '.join(map(str, kept.batches.values()))} trials, {kept.most} at most"
    raise InvalidInput(
        f"{path} was begun {begun}. Go on so: a rule that is changed holds no more. Or use another file."
    )
