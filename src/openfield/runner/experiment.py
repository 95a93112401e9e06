"""Describe a run: which agents meet what, how often, how it is played, and where it is kept.

`Experiment` is the one description. Experiment files, the command line and `of.run` fill it: a new option of a run is a
field here, with its type, its default and its help text, and nothing else. Help prints these fields, so that what makes
trials is imported only when trials are made.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

import msgspec
from cyclopts import Group, Parameter

from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_toml
from openfield.isolation import Isolation
from openfield.options import MORE, CommandChanges, Count, Seconds, Whole
from openfield.parameters import split_source, with_parameters, write_source
from openfield.runner.cluster import PROCESSES, Players, choose_workers, parse_resources

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.trial import Limits, Trial

AGENTS = Group("Agents", sort_key=1)
TRIALS = Group("Trials", sort_key=2)
RecordChoice = Annotated[Literal["digests", "full"] | None, Parameter(group=MORE)]
"""What is kept of large arrays."""
Positive = msgspec.Meta(ge=1, le=1_000_000)
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
TAKEN_FROM_DOMAIN = ("trials", "novelty", "settings", "limits")
"""The keys of an experiment that options of a domain may change in trials that are served."""
MAX_BUDGET = 1e8
"""Seconds: three years."""
BOUNDS = {">=": "{} or more", ">": "above {}", "<=": "at most {}", "<": "below {}"}
Filled = TypeVar("Filled", bound="Options")
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


class Options:
    """Options that know which of them were given: the others leave what an experiment file says."""

    given: dict[str, Any]
    """The values that were given, by name."""

    def __new__(cls, **given: Any) -> Self:
        """Remember what is given."""
        made = object.__new__(cls)
        object.__setattr__(made, "given", given)
        return made


def _read_words(read: Callable[[list[str]], Any]) -> Any:
    """Return how cyclopts reads an option that is repeated: all its words at once."""
    return Parameter(
        converter=lambda _, tokens: read([token.value for token in tokens]),
        n_tokens=-1,
        accepts_keys=False,
        consume_multiple=False,
    )


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
        name, source = (named[1], named[2]) if named else (write_source(*split_source(word)), word)
        if name in agents:
            raise InvalidInput(f"Two agents are called '{name}'. Name one of them: --agent other={source}")
        agents[name] = source
    return agents


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrialOptions(Options):
    """Which trials are made."""

    novelty: Annotated[str | list[str] | None, Parameter(group=TRIALS, metavar="NAME"), _read_words(list)] = None
    """`NAME[:difficulty]`, `a+b` for both at once, or `none`. Repeat it for further trials."""
    trials: Annotated[Whole, Positive, Parameter(group=TRIALS)] = 5
    """Trials per novelty that change [5]. Two fifths as many come on top, in which nothing changes."""
    settings: Annotated[
        dict[str, Any], Parameter(name="--set", group=TRIALS, metavar="KEY=VALUE"), _read_words(parse_settings)
    ] = field(default_factory=dict)
    """A setting of the domain. Repeat it for further settings."""
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"], group=TRIALS)] = False
    """Tell the agents when the world has changed."""
    seed: Annotated[Whole, Parameter(group=TRIALS)] = 0
    """The root of all seeds [0]."""
    sealed: Annotated[bool, Parameter(group=TRIALS)] = False
    """Draw a root seed that no agent can know."""
    secret: Annotated[str | None, Parameter(group=MORE, metavar="FILE")] = None
    """A file with the root seed, for several sealed runs; it is made if it is missing."""
    trials_of: Annotated[str | None, Parameter(group=MORE, metavar="RUN")] = None
    """Play the trials of another run again."""
    trust: Annotated[bool, Parameter(group=MORE)] = False
    """Play code that this run names even if you did not sign it."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """How the cells of a run are played and recorded, also when it is resumed."""

    workers: Annotated[Whole, msgspec.Meta(ge=0)] = 2
    """Processes that play [2]; 0 plays in this one."""
    executor: Annotated[str, Parameter(group=MORE)] = PROCESSES
    """`processes`, `ray` for a Ray cluster that is started here, or `ray=HOST:PORT` [processes]."""
    resources: Annotated[
        dict[str, dict[str, float]], Parameter(group=MORE, metavar="AMOUNTS"), _read_words(parse_resources)
    ] = field(default_factory=dict)
    """What agents need of a machine of a cluster: `num_gpus=1,num_cpus=2`, or `AGENT:num_gpus=1` for one of them."""
    concurrency: Annotated[Count | None, Parameter(group=MORE, metavar="CELLS")] = None
    """Play so many cells at once in this process, for agents that wait, such as language models."""
    keep: Annotated[bool, Parameter(group=MORE)] = False
    """Keep the cells that an earlier version of an agent played, and mark them."""
    note: Annotated[str, Parameter(group=MORE, metavar="TEXT")] = ""
    """A note for the record. Reports print it."""
    tags: Annotated[tuple[str, ...], Parameter(name="--tag", group=MORE, metavar="NAME", consume_multiple=False)] = ()
    """A word to find the run by. Repeat it for further ones."""
    save_seconds: Annotated[Seconds, Parameter(group=MORE)] = 30.0
    """Seconds between two states of an agent with save(), at least [30]."""
    record: RecordChoice = None
    """Record digests of pictures and other large arrays, or keep them in full [as begun, or digests]."""
    share: Annotated[str | None, Parameter(group=MORE, metavar="NUMBER/OF")] = None
    """Play only this share of the cells, counted from 0: `3/100`. `openfield merge` joins the shares."""
    budget: Annotated[str | None, Parameter(group=MORE, metavar="TIME")] = None
    """Start no further cell after this time, such as `2h` or `90m`."""
    run_token_limit: Annotated[Count | None, Parameter(group=MORE, metavar="TOKENS")] = None
    """Stop when the language models of the run have used so many tokens. A higher limit goes on."""

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, wherever they come from."""
        if not self.save_seconds >= 0:
            raise InvalidInput(f"save_seconds must be a number of at least 0, not {self.save_seconds!r}.")
        if self.run_token_limit is not None and self.run_token_limit < 1:
            raise InvalidInput(f"run_token_limit must be a whole number of at least 1, not {self.run_token_limit!r}.")
        _ = self.players, self.seconds

    @property
    def players(self) -> Players:
        """What plays the cells: a number of processes, this one, or a cluster."""
        return choose_workers(self.workers, self.executor, self.concurrency)

    @property
    def seconds(self) -> float:
        """After how many seconds no further cell is started."""
        return math.inf if self.budget is None else parse_budget(self.budget)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Experiment(RunOptions, TrialOptions):
    """The description of a run: experiment files, `openfield run` and `of.run` all fill it.

    A field is a key of an experiment file and an option of `openfield run`; its docstring is the help text.
    """

    domain: Annotated[str, Parameter(parse=False)] = ""
    agents: Annotated[
        list[str] | dict[str, str | AgentTable],
        Parameter(name=["--agent", "-a"], metavar="AGENT", group=AGENTS),
        _read_words(parse_agents),
    ] = field(default_factory=lambda: ["random"])
    """A name, `module:Class`, `file.py:Class(KEY=VALUE)`, `process:COMMAND`, `wire:COMMAND`, or `NAME=AGENT`
    [random]."""
    controls: Annotated[bool, Parameter(group=AGENTS)] = False
    """Play seven agents beside yours that must fail."""
    output: Annotated[str | None, Parameter(name=["--output", "-o"], metavar="FILE")] = None
    """The run file [runs/DOMAIN.sqlite]."""
    repeats: Annotated[Whole, Positive, Parameter(group=MORE)] = 1
    """How often each agent plays each trial [1]."""
    isolate: Annotated[bool | Isolation, Parameter(parse=False)] = False
    """Whether agents play in isolated processes, or what they may see and use there."""
    limits: Annotated[dict[str, Any], Parameter(parse=False)] = field(default_factory=dict)
    people: Annotated[dict[str, Any], Parameter(parse=False)] = field(default_factory=dict)
    """What people are shown and asked when they play: for `openfield play`."""

    def change(self, *changes: Mapping[str, Any]) -> Experiment:
        """Return the experiment with other values; settings and limits are joined, key by key."""
        merged = dict(self.given)
        for values in changes:
            tables = {key: {**merged.get(key, {}), **values[key]} for key in ("settings", "limits") if key in values}
            merged |= {**values, **tables}
        return make_experiment(merged)

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
    def needs(self) -> dict[str, dict[str, float]]:
        """What agents need of a machine of a cluster, by name."""
        tables = self.agents.items() if isinstance(self.agents, dict) else ()
        return {name: one.resources for name, one in tables if isinstance(one, AgentTable) and one.resources}

    def find_path(self, domain: Domain[Any]) -> Path:
        """Return the run file: the one that is named, or that of the domain."""
        return Path(f"runs/{domain.name}.sqlite" if self.output is None else self.output)

    def make_trials(
        self, domain: Domain[Any], run: Path, usual: int = 5, endless: bool = False
    ) -> tuple[list[Trial], dict[str, str]]:
        """Return all trials of the experiment, and what the run file must know of their root seed.

        Args:
            domain: The domain that is named.
            run: The run file, which keeps the seed of a sealed run.
            usual: How many trials per novelty, where the experiment does not say it.
            endless: Whether trials may have no end; only wires and people may play such trials.
        """
        from openfield.runner.sealing import read_trials, seal
        from openfield.settings import make_settings

        self._check_source()
        if self.trials_of is not None:
            found = read_trials(Path(self.trials_of), domain.name, self.trust)
            return limit(found, self.limits), {"trials of": self.trials_of}
        secret = None if self.secret is None else Path(self.secret)
        seed, facts = seal(run, secret) if self.sealed or secret else (self.seed, {})
        count = self.trials if "trials" in self.given else None
        made: list[Trial] = []
        for novelty in self.novelty if isinstance(self.novelty, list) else [self.novelty]:
            made += make_trials(domain, count, seed, novelty, self.redlight, self.settings, usual)
        if not endless:
            domain.check_end(make_settings(domain.settings, self.settings), seed)
        return limit(made, self.limits), facts

    def _check_source(self) -> None:
        """Refuse options that contradict each other about where trials come from."""
        if "seed" in self.given and (self.sealed or self.secret):
            raise InvalidInput("A sealed run draws its root seed: use either --seed, or --sealed or --secret.")
        drawn = [name for name in ("novelty", "settings", "sealed", "secret", "redlight") if getattr(self, name)]
        drawn += [name for name in ("trials", "seed") if name in self.given]
        if self.trials_of is not None and drawn:
            raise InvalidInput(f"--trials-of plays the trials of a run as they are: leave out {', '.join(drawn)}.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServedTrials(TrialOptions):
    """Which trials are made for agents in other programs, or for people: of one novelty."""

    novelty: Annotated[str | None, Parameter(metavar="NAME", group=TRIALS)] = None
    """`NAME[:difficulty]`, `a+b` for both at once, or `none`."""
    trials: Annotated[Count, Parameter(group=TRIALS)] = 5
    """How many trials [5 to serve, 1 to play]."""
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"], group=TRIALS)] = False
    """Tell the agent when the world has changed."""

    def make(
        self, domain: Domain[Any], changes: CommandChanges, run: Path, usual: int, **limits: Any
    ) -> tuple[list[Trial], dict[str, str]]:
        """Make trials of a domain, or the `usual` number of them, and what the run file must know of their root seed.

        Limits given here win over the domain's options.
        """
        settings = dict({} if "trials_of" in self.given else changes.usual_settings)
        if usual == 1 and not {"trials", "trials_of"} & self.given.keys():
            settings.setdefault("unchanged", 0)  # a person who asks for nothing plays one trial
        keys = {key: changes.experiment[key] for key in TAKEN_FROM_DOMAIN if key in changes.experiment}
        experiment = make_experiment({"settings": settings}).change(keys, self.given, {"limits": limits})
        return experiment.make_trials(domain, run, usual, endless=True)


def names_experiment(text: str) -> bool:
    """Return whether a text names an experiment file, and not a domain; `gym:lab.toml` is a domain."""
    from openfield.registry import split_family

    return text.endswith(".toml") and not split_family(text)[0]


def read_experiment(path: Path) -> Experiment:
    """Read an experiment file. A message about its content names the file and the key."""
    values = read_toml(path)
    with naming(path):
        if "domain" not in values:
            raise InvalidInput("missing required field `domain`.")
        return make_experiment(values)


def make_experiment(values: Mapping[str, Any]) -> Experiment:
    """Make an experiment from plain values. A message names a wrong key or value."""
    return fill(Experiment, values, "key", "Keys of an experiment")


def fill(kind: type[Filled], values: Mapping[str, Any], word: str = "option", label: str = "Known") -> Filled:
    """Make options from plain values.

    Args:
        kind: Which options.
        values: The values that are given, by name.
        word: What a name is called in a message.
        label: What the names are called that there are.

    Raises:
        UnknownName: There is no such option.
        InvalidInput: A value is of the wrong type.
    """
    from openfield.record import check_record_kind

    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise UnknownName(word, name, known, label=label)
    check_record_kind(values.get("record"))
    try:
        made = msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{say_mismatch(error)}.") from None
    object.__setattr__(made, "given", dict(values))
    return made


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
    from openfield.registry import check_extra
    from openfield.settings import make_settings

    check_extra(domain)
    chosen = make_settings(domain.settings, settings)
    if count is not None and (why := domain.lists_trials(chosen)):
        raise InvalidInput(why)
    return domain.trials(usual if count is None else count, seed, novelty, red_light, **settings)


def limit(trials: list[Trial], limits: Mapping[str, Any]) -> list[Trial]:
    """Return the trials with some of their limits changed."""
    from openfield.trial import Limits, with_limits

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


def parse_budget(text: str) -> float:
    """Return the seconds of a time such as `2h`, `90m` or `1h30m`."""
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text)
    parts = [float(part or 0) for part in found.groups()] if found else []
    seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    if not 0 < seconds <= MAX_BUDGET:
        raise InvalidInput(f"--budget takes a time such as 2h, 90m or 1h30m, not '{text}'.")
    return seconds
