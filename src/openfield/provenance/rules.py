"""What reading a run needs of its domains, kept as data: titles, metrics, and how beliefs are read.

So no code of a domain runs when a file is read. A detection rule that is code gives its verdict when the episode ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from openfield.capabilities import HasFilm
from openfield.core import Belief
from openfield.domain import Domain
from openfield.errors import DamagedRun, OpenfieldError
from openfield.registry import known_domain
from openfield.trial import Trial

THRESHOLD = 0.5
"""The probability from which a belief is a detection, by the common rule."""

COMPARED = ("name", "threshold", "own_keys")
"""What numbers rest on, and a domain can be asked for."""


class DomainRules(msgspec.Struct, frozen=True, kw_only=True):
    """A domain as a run file describes it, for readers that do not have it installed."""

    name: str
    title: str
    metrics: tuple[str, ...] = Domain.metrics  # type: ignore[assignment]
    baseline: str = Domain.baseline
    threshold: float | None = THRESHOLD
    """From which probability a belief is a detection; None where the verdict on each episode is recorded."""
    own_keys: bool = False
    """Whether the domain decides itself which observations or actions count as equal."""
    novelties: dict[str, str] = {}
    """What each novelty changes, in words."""
    draws: bool | None = None
    """Whether its trials can be filmed; None if that was not recorded."""
    letters: bool = False
    """Whether whole numbers in observations and actions are the codes of letters, to be shown as such."""

    def describe(self, names: Sequence[str]) -> str:
        """Describe the novelties in words."""
        return "; ".join(self.novelties.get(name, name) for name in names) or "no novelty"


def describe_domain(domain: Domain[Any]) -> DomainRules:
    """Return the record of a domain."""
    return DomainRules(
        name=domain.name,
        title=domain.title,
        metrics=tuple(domain.metrics),
        baseline=domain.baseline,
        threshold=None if _has_own(domain, "detected", "detection_rule") else THRESHOLD,
        own_keys=_has_own(domain, "encode", "encode_action"),
        novelties={novelty.id: novelty.note for novelty in domain.novelties},
        draws=isinstance(domain, HasFilm),
        letters=domain.letters,
    )


@cache  # a server writes it for every agent that joins
def write_rules(domain: Domain[Any]) -> Mapping[str, str]:
    """Return the fact by which a run file describes a domain."""
    return {f"rules {domain.name}": msgspec.json.encode(describe_domain(domain)).decode()}


def read_rules(facts: Mapping[str, str], name: str) -> DomainRules:
    """Return the recorded description of a domain; without one, that of a domain with the common rules.

    Raises:
        DamagedRun: It cannot be read.
    """
    text = facts.get(f"rules {name}")
    if text is None:
        return DomainRules(name=name, title=name)
    try:
        return msgspec.json.decode(text, type=DomainRules)
    except msgspec.DecodeError as error:
        raise DamagedRun(f"The recorded rules of the domain '{name}' cannot be read: {error}.") from None


def known_rules(facts: Mapping[str, str], name: str) -> Domain[Any] | DomainRules:
    """Return a domain that is at hand, or else the run file's description of it: reading imports nothing a file names.

    Raises:
        DamagedRun: The file's description cannot be read.
    """
    try:
        return known_domain(name, facts.get(f"domain {name}", ""))
    except OpenfieldError:
        return read_rules(facts, name)


def find_false_rules(facts: Mapping[str, str], domain: Domain[Any]) -> Iterator[str]:
    """Yield the recorded rules of a domain that the domain itself contradicts. Its words may change with versions."""
    recorded, true = read_rules(facts, domain.name), describe_domain(domain)
    for name in COMPARED if f"rules {domain.name}" in facts else ():
        one, other = getattr(recorded, name), getattr(true, name)
        if one != other:
            yield f"The rules of the domain '{domain.name}': {name} is recorded as {one}; the domain says {other}."


def own_rule(domain: Domain[Any], trial: Trial) -> Callable[[Belief], bool] | None:
    """Return a domain's own rule for detections in a trial; None where the common rule holds."""
    return domain.detection_rule(trial) if _has_own(domain, "detected", "detection_rule") else None


def _has_own(domain: Domain[Any], *rules: str) -> bool:
    """Return whether a domain has one of these rules of its own."""
    return any(getattr(type(domain), rule) is not getattr(Domain, rule) for rule in rules)
