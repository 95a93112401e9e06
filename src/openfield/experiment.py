"""An experiment as one record, from a TOML file or from flags: which agents meet what, how often, where it is kept.

The command line's way into a plan.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import msgspec

from openfield.errors import InvalidInput, OpenfieldError
from openfield.registry import find_agent, find_domain
from openfield.trial import Limits, Trial

Positive = Annotated[int, msgspec.Meta(ge=1)]


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `openfield run` needs to know; the keys of an experiment file."""

    domain: str
    agents: list[str] | dict[str, str] = msgspec.field(default_factory=lambda: ["random"])
    novelty: str | list[str] | None = None
    """One or several; each gets its own trials. `none` means no novelty, `a+b` both at once."""
    trials: Positive = 5
    repeats: Positive = 1
    seed: int = 0
    redlight: bool = False
    workers: Annotated[int, msgspec.Meta(ge=0)] = 2
    output: str | None = None
    settings: dict[str, Any] = {}
    limits: dict[str, Any] = {}

    @property
    def path(self) -> Path:
        """The run file."""
        return Path(self.output or f"runs/{find_domain(self.domain).name}.sqlite")

    def make_trials(self) -> list[Trial]:
        """All trials, and the agents looked for: a wrong name is found before anything starts."""
        domain = find_domain(self.domain)
        for source in self.agents.values() if isinstance(self.agents, dict) else self.agents:
            if not source.startswith("wire:"):
                find_agent(source, domain)
        novelties = self.novelty if isinstance(self.novelty, list) else [self.novelty]
        options: dict[str, Any] = {"count": self.trials, "seed": self.seed, "red_light": self.redlight}
        made = [trial for novelty in novelties for trial in domain.trials(novelty=novelty, **options, **self.settings)]
        return [limit(trial, self.limits) for trial in made]


def read_experiment(path: Path) -> Experiment:
    """An experiment file; what is wrong with it is named with file and key."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Experiment)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = re.sub(r" - at `\$\.(.*)`$", r" (key '\1')", str(error))
        keys = ", ".join(Experiment.__struct_fields__)
        raise InvalidInput(f"{path}: {reason}. Keys of an experiment: {keys}.") from None


def limit(trial: Trial, limits: dict[str, Any]) -> Trial:
    """The trial with some of its limits changed."""
    if not limits:
        return trial
    try:
        changed = msgspec.convert({**msgspec.to_builtins(trial.limits), **limits}, Limits)
    except msgspec.ValidationError as error:
        keys = ", ".join(Limits.__struct_fields__)
        raise InvalidInput(f"limits: {error}. Allowed: {keys}.") from None
    return msgspec.structs.replace(trial, limits=changed)


def parse_settings(pairs: list[str]) -> dict[str, str]:
    """`key=value` words as a mapping."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise OpenfieldError(f"--set takes key=value, not '{pair}'.")
        settings[key] = value
    return settings


def parse_agents(words: list[str]) -> dict[str, str]:
    """Agents by name; `NAME=SOURCE` gives one a name of its own."""
    agents: dict[str, str] = {}
    for word in words:
        named = re.fullmatch(r"([\w.-]+)=(.+)", word)
        name, source = (named[1], named[2]) if named else (word, word)
        if name in agents:
            raise InvalidInput(f"Two agents are called '{name}'. Name one of them: --agent other={source}")
        agents[name] = source
    return agents
