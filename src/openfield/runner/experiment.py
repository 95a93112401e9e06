"""Describe a run: which agents meet what, how often, how it is played, and where it is kept.

`Experiment` is the one description. Experiment files, the command line and `of.run` fill it: a new option of a run is a
field here, with its type, its default and its help text, and nothing else. Help prints these fields, so that what makes
trials is imported only when trials are made.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Group, Parameter

from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_toml
from openfield.isolation import Isolation, make_isolation
from openfield.options import (
    AGENTS,
    MORE,
    CommandChanges,
    Count,
    Options,
    RecordKind,
    Seconds,
    Tokens,
    Whole,
    fill,
    say_mismatch,
)
from openfield.parameters import AgentText, read_agent
from openfield.runner.cluster import PROCESSES, Players, choose_workers, parse_resources
from openfield.runner.stopping.rule import MAX_TRIALS, StoppingOptions

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.trial import Limits, RedLight, Trial

TRIALS = Group("Trials", sort_key=2)
RecordChoice = Annotated[RecordKind | None, Parameter(group=MORE)]
"""How large arrays are recorded."""
Positive = msgspec.Meta(ge=1, le=1_000_000)
"""More trials than anyone waits for; without an end a mistyped number fills the memory before anything is played."""
TAKEN_FROM_DOMAIN = ("trials", "novelty", "settings", "limits")
"""The keys of an experiment that options of a domain may change in trials that are served."""
MAX_QUESTION = 2_000
"""Characters of a question."""
MAX_BUDGET = 1e8
"""Seconds: three years."""
OF_DOMAIN = ("agents", "limits", "novelty", "redlight", "redlight_strength", "repeats", "seed", "settings", "trials")
"""The keys that a table of `domains` may have beside `domain`."""
JOINED = ("settings", "limits")
"""The keys whose values are mappings, which a change joins key by key."""


class AgentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent with parameters, or several versions of one, as a table of an experiment file."""

    agent: str = ""
    parameters: dict[str, Any] = {}
    resources: dict[str, float] = {}
    """The resources it needs on a cluster: `num_cpus`, `num_gpus` and resources of other names."""
    versions: dict[str, str | dict[str, Any]] = {}
    """Version -> where it comes from, or the parameters in which it differs. Each plays as an agent of its own."""

    def read(self, name: str) -> dict[str, AgentText]:
        """Return the agent with its parameters by this name, or its versions by this name and theirs."""
        if not self.versions:
            return {name: self._read(name, {})}
        return {f"{name}-{version}": self._read(name, given) for version, given in self.versions.items()}

    def _read(self, name: str, version: str | dict[str, Any]) -> AgentText:
        agent, own = (version, {}) if isinstance(version, str) else (self.agent, version)
        if not agent:
            raise InvalidInput(f"agents.{name}: missing required field `agent`, which says where it comes from.")
        return read_agent(agent).give({**self.parameters, **own})


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


def read_agents(words: list[str]) -> dict[str, AgentText]:
    """Return agents by name. `NAME=AGENT` gives one a name of its own."""
    agents: dict[str, AgentText] = {}
    for word in words:
        named = re.fullmatch(r"([\w.-]+)=(.+)", word)
        agent = read_agent(named[2] if named else word)
        name = named[1] if named else agent.name
        if name in agents:
            raise InvalidInput(f"Two agents are called '{name}'. Name one of them: --agent other={agent}")
        agents[name] = agent
    return agents


WORDS, SETTINGS, AMOUNTS = _read_words(list), _read_words(parse_settings), _read_words(parse_resources)
"""How options are read whose words are names, settings, or amounts of resources."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrialOptions(Options):
    """Which trials are made."""

    novelty: Annotated[str | list[str] | None, Parameter(group=TRIALS, metavar="NAME"), WORDS] = None
    """`NAME[:difficulty]`, `a+b` for both, `'NAME over 20'` for a gradual change, or `none`. Repeatable."""
    trials: Annotated[Whole, Positive, Parameter(group=TRIALS)] = 5
    """Trials per novelty that change [5]. Two fifths as many come on top, in which nothing changes."""
    settings: Annotated[dict[str, Any], Parameter(name="--set", group=TRIALS, metavar="KEY=VALUE"), SETTINGS] = field(
        default_factory=dict
    )
    """A setting of the domain. Repeat it for further settings."""
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"], group=TRIALS)] = False
    """Tell the agents when the world has changed."""
    redlight_strength: Annotated[bool, Parameter(group=MORE)] = False
    """Tell the agents how strong the change is."""
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

    @property
    def red_light(self) -> RedLight:
        """What the agents are told of the change."""
        return "how much" if self.redlight_strength else self.redlight


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LimitOptions(Options):
    """Limits of the trials that the command line changes: keys of `limits`, named as in `Limits`."""

    reply_seconds: Annotated[float | None, Parameter(group=MORE, metavar="SECONDS")] = None
    """How long a reply may take [60]."""
    tokens: Annotated[Whole | None, Parameter(name="--token-limit", group=MORE, metavar="TOKENS")] = None
    """Tokens that a language model may use in a cell; then the trial ends as truncated."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """How the cells of a run are played and recorded, also when it is resumed."""

    workers: Annotated[Whole, msgspec.Meta(ge=0)] = 2
    """Processes that play [2]; 0 plays in this one."""
    executor: Annotated[str, Parameter(group=MORE)] = PROCESSES
    """`processes`, `ray` for a Ray cluster that is started here, or `ray=HOST:PORT` [processes]."""
    resources: Annotated[dict[str, dict[str, float]], Parameter(group=MORE, metavar="AMOUNTS"), AMOUNTS] = field(
        default_factory=dict
    )
    """What agents need of a machine of a cluster: `num_gpus=1,num_cpus=2`, or `AGENT:num_gpus=1` for one of them."""
    concurrency: Annotated[Count | None, Parameter(group=MORE, metavar="CELLS")] = None
    """Play this number of cells at once in this process, for agents that wait, such as language models."""
    retry: Annotated[bool, Parameter(group=MORE)] = False
    """Play the cells again that an agent failed."""
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
    ask_above: Annotated[Tokens, Parameter(group=MORE)] = 1_000_000
    """Ask at a terminal before language models use more tokens than this [1000000]."""
    run_token_limit: Annotated[Tokens | None, Parameter(group=MORE)] = None
    """Stop when the language models of the run have used this number of tokens. A higher limit goes on."""

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
class RegisterOptions(RunOptions, StoppingOptions):
    """How a run is played, how often and until when, and what is registered of it before its first trial."""

    repeats: Annotated[Whole, Positive, Parameter(group=MORE)] = 1
    """How often each agent plays each trial [1]."""
    register: Annotated[str | None, Parameter(group=MORE, metavar="FILE")] = None
    """Write into this file, before the first trial, what the run asks, who plays what, and when it stops."""
    question: Annotated[str, Parameter(group=MORE, metavar="TEXT")] = ""
    """With --register: the question that the run is to answer."""
    registered: Annotated[str, Parameter(group=MORE, metavar="NAMES")] = ""
    """With --register: the numbers that the question is about, such as after,concordance [those that tables show]."""

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, wherever they come from."""
        RunOptions.__post_init__(self)
        StoppingOptions.__post_init__(self)
        if self.register is None and (self.question or self.registered):
            raise InvalidInput("A question and its numbers are registered in a file: add --register FILE.")
        if not self.question.isprintable() or len(self.question) > MAX_QUESTION:
            raise InvalidInput(f"A question is at most {MAX_QUESTION:,} characters, all of which can be printed.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Experiment(RegisterOptions, TrialOptions):
    """The description of a run: experiment files, `openfield run` and `of.run` all fill it.

    A field is a key of an experiment file and an option of `openfield run`; its docstring is the help text.
    """

    domain: Annotated[str, Parameter(parse=False)] = ""
    domains: Annotated[list[dict[str, Any]], Parameter(parse=False)] = field(default_factory=list)
    """Several domains instead of one: a table for each, with keys of its own beside those of the whole."""
    agents: Annotated[
        list[str] | dict[str, str | AgentTable],
        Parameter(name=["--agent", "-a"], metavar="AGENT", group=AGENTS),
        WORDS,
    ] = field(default_factory=lambda: ["random"])
    """A name, `module:Class`, `file.py:Class(KEY=VALUE)`, `process:COMMAND`, `wire:COMMAND`, or `NAME=AGENT`
    [random]."""
    controls: Annotated[bool, Parameter(group=AGENTS)] = False
    """Play nine agents beside yours that must fail."""
    output: Annotated[str | None, Parameter(name=["--output", "-o"], metavar="FILE")] = None
    """The run file [runs/DOMAIN.sqlite]."""
    max_trials: Annotated[Whole, Positive, Parameter(group=MORE)] = MAX_TRIALS
    """With --until or --race: trials per novelty that change, at most [100]; --trials of them make a batch."""
    isolate: Annotated[bool | dict[str, Any], Parameter(parse=False)] = False
    """Whether agents play in isolated processes, or their rights there: keys of `Isolation`."""
    limits: Annotated[dict[str, Any], Parameter(parse=False)] = field(default_factory=dict)
    people: Annotated[dict[str, Any], Parameter(parse=False)] = field(default_factory=dict)
    """What people are shown and asked when they play: for `openfield play`."""

    def change(self, *changes: Mapping[str, Any]) -> Experiment:
        """Return the experiment with other values, in all its domains; settings and limits are joined, key by key."""
        merged = dict(self.given)
        for values in changes:
            joined = {key: {**merged.get(key, {}), **values[key]} for key in JOINED if key in values}
            merged |= {**values, **joined}
            if "domains" in merged and "domains" not in values:
                merged["domains"] = [_leave_out(values, table) for table in merged["domains"]]
        return make_experiment(merged)

    def without(self, *names: str) -> Experiment:
        """Return the experiment without the values of these keys."""
        return make_experiment({key: value for key, value in self.given.items() if key not in names})

    def split(self) -> list[Experiment]:
        """Return an experiment for each of its domains: itself if it names only one.

        A key of the table of a domain replaces that of the whole. Agents, settings and limits are joined.
        """
        return [self._join(number, table) for number, table in enumerate(self.domains, 1)] or [self]

    def _join(self, number: int, table: dict[str, Any]) -> Experiment:
        shared = {key: value for key, value in self.given.items() if key != "domains"}
        agents = [each["agents"] for each in (shared, table) if "agents" in each]
        try:
            for key in table.keys() - {"domain", *OF_DOMAIN}:
                raise UnknownName("key", key, ["domain", *OF_DOMAIN], label="Keys of a domain")
            if "domain" not in table:
                raise InvalidInput("missing required field `domain`.")
            own = {**table, "agents": _join_agents(agents)} if agents else table
            return make_experiment(shared).change(own)
        except (InvalidInput, UnknownName) as error:
            raise InvalidInput(f"table {number} of domains: {error}") from None

    def read_agents(self) -> dict[str, AgentText]:
        """Return the agents by name."""
        if isinstance(self.agents, list):
            return read_agents(self.agents)
        found: dict[str, AgentText] = {}
        for name, one in self.agents.items():
            for each, agent in ({name: read_agent(one)} if isinstance(one, str) else one.read(name)).items():
                if each in found:
                    raise InvalidInput(f"Two agents are called '{each}': one of them is a version of '{name}'.")
                found[each] = agent
        return found

    @property
    def isolation(self) -> Isolation | None:
        """What isolated agents may see and use; None if agents are not isolated."""
        if self.isolate is False:
            return None
        return make_isolation(**({} if self.isolate is True else self.isolate))

    @property
    def needs(self) -> dict[str, dict[str, float]]:
        """What agents need of a machine of a cluster, by name."""
        found = self.agents.items() if isinstance(self.agents, dict) else ()
        tables = {name: one for name, one in found if isinstance(one, AgentTable) and one.resources}
        return {each: one.resources for name, one in tables.items() for each in one.read(name)}

    @property
    def batch(self) -> int:
        """How many trials of a batch change, in a run that stops by itself."""
        return min(self.trials, self.max_trials)

    def find_path(self, name: str) -> Path:
        """Return the run file: the one that is named, or one of this name."""
        return Path(f"runs/{name}.sqlite" if self.output is None else self.output)

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
        from openfield.registry import check_extra
        from openfield.runner.sealing import read_run_trials, seal
        from openfield.settings import make_settings

        self.check_source()
        if self.trials_of is not None:
            found = read_run_trials(Path(self.trials_of), domain, self.trust)
            return change_limits(self._deal(found, self.batch), self.limits), {"trials of": self.trials_of}
        secret = None if self.secret is None else Path(self.secret)
        seed, facts = seal(run, secret) if self.sealed or secret else (self.seed, {})
        check_extra(domain)
        settings = make_settings(domain.settings, self.settings)  # refuses other options of `Domain.trials`
        if (why := domain.lists_trials(settings)) and ("trials" in self.given or self.stops):
            raise InvalidInput(f"--until and --race add trials: {why}" if self.stops else why)
        count = self.trials if "trials" in self.given else usual
        made: list[Trial] = []
        for novelty in self.novelty if isinstance(self.novelty, list) else [self.novelty]:
            made += self._make_set(domain, count, seed, novelty)
        if not endless:
            domain.check_end(settings, seed)
        return change_limits(made, self.limits), facts

    def _make_set(self, domain: Domain[Any], count: int, seed: int, novelty: str | None) -> list[Trial]:
        """Return the trials of a novelty: a number of them, or as many batches of it as may be played."""
        if not self.stops:
            return domain.trials(count, seed, novelty, self.red_light, **self.settings)
        most, settings = self.max_trials, dict(self.settings)
        if re.fullmatch(r"\d{1,9}", twins := str(settings.get("unchanged", ""))):  # that many in every batch
            settings["unchanged"] = min(most, math.ceil(int(twins) * most / count))
        return self._deal(domain.trials(most, seed, novelty, self.red_light, **settings), min(count, most))

    def _deal(self, trials: list[Trial], size: int) -> list[Trial]:
        """Return trials in batches, if the run stops by itself."""
        if not self.stops:
            return trials
        from openfield.runner.stopping.batches import in_batches

        return in_batches(trials, size)

    def check_source(self) -> None:
        """Refuse options that contradict each other about where trials come from."""
        if "seed" in self.given and (self.sealed or self.secret):
            raise InvalidInput("A sealed run draws its root seed: use either --seed, or --sealed or --secret.")
        drawn = [
            name
            for name in ("novelty", "settings", "sealed", "secret", "redlight", "redlight_strength")
            if getattr(self, name)
        ]
        drawn += [name for name in ("trials", "seed", "max_trials") if name in self.given]
        if "max_trials" in self.given and not self.stops:
            raise InvalidInput(
                "--max-trials bounds a run that stops by itself: add --until or --race, or use --trials."
            )
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
        if changes.sealed and not {"seed", "sealed", "secret", "trials_of"} & self.given.keys():
            keys["sealed"] = True
        experiment = make_experiment({"settings": settings}).change(keys, self.given, {"limits": limits})
        return experiment.make_trials(domain, run, usual, endless=True)


def names_experiment(text: str) -> bool:
    """Return whether a text names an experiment file, and not a domain; `gym:lab.toml` is a domain."""
    from openfield.registry import split_family

    return text.endswith(".toml") and not split_family(text)[0]


def read_experiment(path: Path) -> Experiment:
    """Read an experiment file. A message about its content names the file and the key."""
    values = read_toml(path)
    with naming_file(path):
        if not any(values.get(key) for key in ("domain", "domains")):
            raise InvalidInput("missing required field `domain`.")
        if "domain" in values and "domains" in values:
            raise InvalidInput("`domain` names one domain and `domains` several: use either.")
        made = make_experiment(values)
        made.split()  # a mistake in a table is said before anything else is done
        return made


def _leave_out(values: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a domain without the keys that have other values now, in all domains."""
    kept = {key: value for key, value in table.items() if key not in values}
    for key in JOINED:
        if key in values and key in table:
            kept[key] = _leave_out_names(values[key], table[key])
    return kept


def _leave_out_names(values: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without those that have other values now, also if `make.size` stands for a key of `make`."""
    kept = {name: value for name, value in settings.items() if name not in values}
    for name, value in kept.items():
        if isinstance(value, Mapping):
            kept[name] = {key: one for key, one in value.items() if f"{name}.{key}" not in values}
    return kept


def _join_agents(agents: Sequence[list[str] | dict[str, Any]]) -> list[str] | dict[str, Any]:
    """Return the agents of a whole and of one of its parts; of two with the same name the part's own."""
    lists = [each for each in agents if isinstance(each, list)]
    if len(lists) == len(agents):
        return list(dict.fromkeys(word for words in lists for word in words))
    tables = (
        {name: agent.text for name, agent in read_agents(each).items()} if isinstance(each, list) else each
        for each in agents
    )
    return {name: agent for table in tables for name, agent in table.items()}


def make_experiment(values: Mapping[str, Any]) -> Experiment:
    """Make an experiment from plain values. A message names a wrong key or value."""
    return fill(Experiment, values, "key", "Keys of an experiment")


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Name a file in every message about its content."""
    try:
        yield
    except (InvalidInput, UnknownName) as error:
        raise InvalidInput(f"{path}: {error}") from None


def change_limits(trials: list[Trial], limits: Mapping[str, Any]) -> list[Trial]:
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


def parse_budget(text: str) -> float:
    """Return the seconds of a time such as `2h`, `90m` or `1h30m`."""
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text)
    parts = [float(part or 0) for part in found.groups()] if found else []
    seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    if not 0 < seconds <= MAX_BUDGET:
        raise InvalidInput(f"--budget takes a time such as 2h, 90m or 1h30m, not '{text}'.")
    return seconds
