"""Describe an experiment, from a TOML file or from options: which agents meet what, how often, and where it is kept.

The command line's way into a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from openfield.domain import Domain
from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_toml
from openfield.isolation import Isolation
from openfield.parameters import with_parameters
from openfield.record import RecordKind, check_record_kind
from openfield.registry import check_extra, find_domain, split_family
from openfield.runner.cluster import PROCESSES, Players, choose_workers
from openfield.runner.plan import name_agent
from openfield.runner.sealing import read_trials, seal
from openfield.settings import make_settings
from openfield.trial import Limits, Trial, with_limits

Positive = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
"""More trials than anyone waits for; without an end a mistyped number fills the memory before anything is played."""
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of keys",
    "null": "nothing",
}
MAX_BUDGET = 1e8
"""Seconds: three years."""
BOUNDS = {">=": "{} or more", ">": "above {}", "<=": "at most {}", "<": "below {}"}
_MISMATCH = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?: (?P<sign>[<>]=?) (?P<bound>\S+))?(?:, got `(?P<other>[^`]+)`)?"
    r" - at `\$\.(?P<key>.*)`$"
)


class AgentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent with parameters, as a table of an experiment file."""

    agent: str
    parameters: dict[str, Any] = {}
    resources: dict[str, float] = {}
    """What it needs of a machine of a cluster: `num_cpus`, `num_gpus` and resources of other names."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `openfield run` needs to know; the keys of an experiment file."""

    domain: str
    agents: list[str] | dict[str, str | AgentTable] = msgspec.field(default_factory=lambda: ["random"])
    controls: bool = False
    """Whether controls play beside the agents."""
    novelty: str | list[str] | None = None
    """One or several; each gets its own trials. `none` means no novelty, `a+b` both at once."""
    trials: Positive | msgspec.UnsetType = msgspec.UNSET
    """5 where a file of the domain does not list them."""
    repeats: Positive = 1
    seed: int | msgspec.UnsetType = msgspec.UNSET
    """0 where it is not given."""
    sealed: bool = False
    """Whether the root seed is drawn, so that no agent can compute the trials."""
    secret: str | None = None
    """A file with the root seed, for several sealed runs."""
    trials_of: str | None = None
    """A run file whose trials are played again."""
    trust: bool = False
    """Whether code that this run file names may run although this user did not sign it."""
    redlight: bool = False
    workers: Annotated[int, msgspec.Meta(ge=0)] = 2
    executor: str = PROCESSES
    """`processes`, `ray`, or `ray=HOST:PORT`."""
    concurrency: Positive | None = None
    """How many cells are played at the same time in this process, for agents that wait."""
    isolate: bool | Isolation = False
    """Whether agents play in isolated processes, or what they may see and use there."""
    output: str | None = None
    record: RecordKind | None = None
    """What is kept of large arrays: digests, or in full."""
    settings: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    people: dict[str, Any] = {}
    """What people are shown and asked when they play: for `openfield play`."""

    @property
    def sources(self) -> list[str] | dict[str, str]:
        """The agents, each as one text with its parameters."""
        if isinstance(self.agents, list):
            return self.agents
        return {
            name: one if isinstance(one, str) else with_parameters(one.agent, **one.parameters)
            for name, one in self.agents.items()
        }

    @property
    def players(self) -> Players:
        """What plays the cells: so many processes, this one, or a cluster."""
        return choose_workers(self.workers, self.executor, self.concurrency)

    @property
    def resources(self) -> dict[str, dict[str, float]]:
        """What agents need of a machine of a cluster, by name."""
        tables = self.agents.items() if isinstance(self.agents, dict) else ()
        return {name: one.resources for name, one in tables if isinstance(one, AgentTable) and one.resources}

    @property
    def path(self) -> Path:
        """The run file."""
        return Path(f"runs/{find_domain(self.domain).name}.sqlite" if self.output is None else self.output)

    def make_trials(self, usual: int = 5, endless: bool = False) -> tuple[list[Trial], dict[str, str]]:
        """Return all trials of the experiment, and what the run file must know of their root seed.

        Args:
            usual: How many trials per novelty, where the experiment does not say it.
            endless: Whether trials may have no end; only wires and people may play such trials.
        """
        domain = find_domain(self.domain)
        self._check_source()
        if self.trials_of is not None:
            found = read_trials(Path(self.trials_of), domain.name, self.trust)
            return limit(found, self.limits), {"trials of": self.trials_of}
        secret = None if self.secret is None else Path(self.secret)
        seed, facts = seal(self.path, secret) if self.sealed or secret else (self.seed or 0, {})
        made: list[Trial] = []
        for novelty in self.novelty if isinstance(self.novelty, list) else [self.novelty]:
            made += make_trials(domain, self.trials or None, seed, novelty, self.redlight, self.settings, usual)
        if not endless:
            domain.check_end(make_settings(domain.settings, self.settings), seed)
        return limit(made, self.limits), facts

    def _check_source(self) -> None:
        """Refuse options that contradict each other about where trials come from."""
        if self.seed is not msgspec.UNSET and (self.sealed or self.secret):
            raise InvalidInput("A sealed run draws its root seed: use either --seed, or --sealed or --secret.")
        drawn = [name for name in ("novelty", "settings", "sealed", "secret", "redlight") if getattr(self, name)]
        drawn += [name for name in ("trials", "seed") if getattr(self, name) is not msgspec.UNSET]
        if self.trials_of is not None and drawn:
            raise InvalidInput(f"--trials-of plays the trials of a run as they are: leave out {', '.join(drawn)}.")


def names_experiment(text: str) -> bool:
    """Return whether a text names an experiment file, and not a domain; `gym:lab.toml` is a domain."""
    return text.endswith(".toml") and not split_family(text)[0]


def read_experiment(path: Path) -> Experiment:
    """Read an experiment file. A message about its content names the file and the key."""
    values = read_toml(path)
    with naming(path):
        experiment = make_experiment(values)
        find_domain(experiment.domain)
    return experiment


def make_experiment(values: Mapping[str, Any]) -> Experiment:
    """Make an experiment from plain values. A message names a wrong key or value."""
    for key in values:
        if key not in Experiment.__struct_fields__:
            raise UnknownName("key", key, Experiment.__struct_fields__, label="Keys of an experiment")
    check_record_kind(values.get("record"))
    try:
        return msgspec.convert(values, Experiment)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{say_mismatch(error)}.") from None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a file in every message about its content."""
    try:
        yield
    except (InvalidInput, UnknownName) as error:
        raise InvalidInput(f"{path}: {error}") from None


def make_trials(
    domain: Domain[Any],
    count: int | None,
    seed: int,
    novelty: str | None,
    red_light: bool,
    settings: Mapping[str, Any],
    usual: int = 5,
) -> list[Trial]:
    """Make trials of a domain. A key that is not a setting is refused, even if `Domain.trials` has such an option."""
    check_extra(domain)
    chosen = make_settings(domain.settings, settings)
    if count is not None and (why := domain.lists_trials(chosen)):
        raise InvalidInput(why)
    return domain.trials(usual if count is None else count, seed, novelty, red_light, **settings)


def limit(trials: list[Trial], limits: Mapping[str, Any]) -> list[Trial]:
    """Return the trials with some of their limits changed."""
    for key in limits:
        if key not in Limits.__struct_fields__:
            raise UnknownName("limit", key, Limits.__struct_fields__, label="Known")

    def change(before: Limits) -> Limits:
        try:
            return msgspec.convert({**msgspec.to_builtins(before), **limits}, Limits)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"limits: {say_mismatch(error)}.") from None

    return with_limits(trials, change) if limits else trials


def say_mismatch(error: msgspec.ValidationError) -> str:
    """Return what is wrong with a value in words: `'trials' must be a whole number, 1 or more`."""
    found = _MISMATCH.match(str(error))
    if found is None:
        return str(error).removeprefix("Object ").removesuffix(" - at `$.isolate`")
    kinds = " or ".join(KINDS.get(kind, kind) for kind in found["kinds"].split(" | "))
    bound = f", {BOUNDS[found['sign']].format(found['bound'].removesuffix('.0'))}" if found["sign"] else ""
    other = f", not {KINDS.get(found['other'], found['other'])}" if found["other"] else ""
    return f"'{found['key']}' must be {kinds}{bound}{other}"


def parse_settings(pairs: list[str]) -> dict[str, str]:
    """Return words of the form `key=value` as a mapping."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise InvalidInput(f"--set takes key=value, not '{pair}'.")
        settings[key] = value
    return settings


def parse_agents(words: list[str]) -> dict[str, str]:
    """Return agents by name. `NAME=SOURCE` gives one a name of its own."""
    agents: dict[str, str] = {}
    for word in words:
        named = re.fullmatch(r"([\w.-]+)=(.+)", word)
        name, source = (named[1], named[2]) if named else (name_agent(word), word)
        if name in agents:
            raise InvalidInput(f"Two agents are called '{name}'. Name one of them: --agent other={source}")
        agents[name] = source
    return agents


def parse_budget(text: str) -> float:
    """Return the seconds of a time such as `2h`, `90m` or `1h30m`."""
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text)
    parts = [float(part or 0) for part in found.groups()] if found else []
    seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    if not 0 < seconds <= MAX_BUDGET:
        raise InvalidInput(f"--budget takes a time such as 2h, 90m or 1h30m, not '{text}'.")
    return seconds
