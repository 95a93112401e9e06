"""Parameters that several commands have: output files, settings, metrics, trials, and what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from openfield.errors import InvalidInput
from openfield.options import MORE, CommandChanges, Count, Seconds, Whole, given

if TYPE_CHECKING:
    from openfield.provenance.provenance import Remarks
    from openfield.runner.cluster import Players
    from openfield.runner.plan import Plan
    from openfield.trial import Trial

AGENTS = Group("Agents", sort_key=1)
TRIALS = Group("Trials", sort_key=2)
Output = Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")]
"""The file to write."""
Settings = Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False, metavar="KEY=VALUE")]
"""Settings of a domain, one with each `--set`."""
Metrics = Annotated[list[str] | None, Parameter(name="--metric", consume_multiple=False, metavar="NAME")]
"""Metrics, one with each `--metric`."""
Concurrency = Annotated[Count | None, Parameter(group=MORE, metavar="CELLS")]
"""How many cells are played at the same time in this process."""
RecordChoice = Annotated[Literal["digests", "full"] | None, Parameter(group=MORE)]
"""What is kept of large arrays."""
Trust = Annotated[bool, Parameter(group=MORE)]
"""Whether code that a run file names may run although this user did not sign it."""

KindOfIntervals = Literal["usual", "conservative"]
"""The rule of the intervals."""
KindOfFailures = Literal["count", "exclude"]
"""What becomes of trials that an agent failed."""


@Parameter(name="*")
@dataclass(frozen=True)
class NumberOptions:
    """How numbers are computed."""

    intervals: KindOfIntervals = "usual"
    """The rule of the intervals. Conservative ones are wider and also hold for all-or-nothing scores [usual]."""
    failures: KindOfFailures = "count"
    """Count trials that an agent failed, as 0 where it failed, or exclude them [count]."""


USUAL = NumberOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class IsolationOptions:
    """Whether agents are isolated, and what they may see and use then."""

    isolate: Annotated[bool, Parameter(group=AGENTS)] = False
    """Play every agent in a closed process of its own."""
    memory: Annotated[str | None, Parameter(group=MORE, metavar="SIZE")] = None
    """Memory of an isolated agent with all its processes [2GB]."""
    grant: Annotated[list[str] | None, Parameter(group=MORE, consume_multiple=False, metavar="PATH")] = None
    """A file or folder that isolated agents may read; `PATH:rw` may be written. Repeat it for further ones."""
    env: Annotated[list[str] | None, Parameter(group=MORE, consume_multiple=False, metavar="NAME")] = None
    """An environment variable that isolated agents are given. Repeat it for further ones."""
    gpu: Annotated[bool, Parameter(group=MORE)] = False
    """Let isolated agents use the graphics cards."""
    network: Annotated[bool, Parameter(group=MORE)] = False
    """Let isolated agents use the network."""

    def add_to(self, before: bool | Mapping[str, Any]) -> bool | dict[str, Any]:
        """Return the key `isolate` of an experiment with these options."""
        told = {name: value for name, value in given(self).items() if name != "isolate"}
        if before is False and not self.isolate:
            if told:
                raise InvalidInput(f"--{next(iter(told))} is for isolated agents. Add --isolate.")
            return False
        return {**({} if isinstance(before, bool) else before), **told}


NO_ISOLATION = IsolationOptions()


@Parameter(name="*", group=TRIALS)
@dataclass(frozen=True)
class TrialOptions:
    """Which trials are made."""

    trials: Count | None = None
    """How many trials [5 to serve, 1 to play]."""
    novelty: Annotated[str | None, Parameter(metavar="NAME")] = None
    """`NAME[:difficulty]`, `a+b` for both at once, or `none`."""
    set_: Settings = None
    """A setting of the domain. Repeat it for further settings."""
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"])] = False
    """Tell the agent when the world has changed."""
    seed: Whole | None = None
    """The root of all seeds [0]."""
    sealed: bool = False
    """Draw a root seed that no agent can know."""
    secret: Annotated[str | None, Parameter(group=MORE, metavar="FILE")] = None
    """A file with the root seed, for several sealed runs; it is made if it is missing."""
    trials_of: Annotated[str | None, Parameter(group=MORE, metavar="RUN")] = None
    """Play the trials of another run again."""
    trust: Trust = False
    """Play code that this run names even if you did not sign it."""

    def make(
        self, domain: str, changes: CommandChanges, run: Path, usual: int, **limits: Any
    ) -> tuple[list[Trial], dict[str, str]]:
        """Make trials of a domain, or the `usual` number of them, and what the run file must know of their root seed.

        Limits given here win over the domain's options.
        """
        from openfield.runner.experiment import make_experiment, parse_settings

        keys, own = changes.experiment, given(self)
        start = {} if self.trials_of is not None else changes.usual_settings
        settings = {**start, **keys.get("settings", {}), **parse_settings(own.pop("set_", []))}
        if usual == 1 and not self.trials and self.trials_of is None:
            settings.setdefault("unchanged", 0)  # a person who asks for nothing plays one trial
        chosen = {key: keys[key] for key in ("trials", "novelty") if key in keys} | own
        more = {"settings": settings, "limits": {**keys.get("limits", {}), **limits}}
        experiment = make_experiment({"domain": domain, "output": str(run), **chosen, **more})
        return experiment.make_trials(usual, endless=True)


DEFAULT = TrialOptions()


LIMITS = {"reply_seconds": "reply_seconds", "token_limit": "tokens"}
"""Options that are limits of a trial."""


@Parameter(name="*", group=TRIALS)
@dataclass(frozen=True)
class ExperimentOptions:
    """What is played, as keys of an experiment."""

    novelty: Annotated[list[str] | None, Parameter(consume_multiple=False, metavar="NAME")] = None
    """`NAME[:difficulty]`, `a+b` for both at once, or `none`. Repeat it for further trials."""
    trials: Whole | None = None
    """Trials per novelty that change [5]. Two fifths as many come on top, in which nothing changes."""
    set_: Settings = None
    """A setting of the domain. Repeat it for further settings."""
    redlight: Annotated[bool | None, Parameter(name=["--redlight", "--given-detection"])] = None
    """Tell the agents when the world has changed."""
    seed: Whole | None = None
    """The root of all seeds [0]."""
    sealed: bool | None = None
    """Draw a root seed that no agent can know."""
    controls: Annotated[bool | None, Parameter(group=AGENTS)] = None
    """Play seven agents beside yours that must fail."""
    secret: Annotated[str | None, Parameter(group=MORE, metavar="FILE")] = None
    """A file with the root seed, for several sealed runs; it is made if it is missing."""
    trials_of: Annotated[str | None, Parameter(group=MORE, metavar="RUN")] = None
    """Play the trials of another run again."""
    trust: Annotated[bool | None, Parameter(group=MORE)] = None
    """Play code that this run names even if you did not sign it."""
    repeats: Annotated[Whole | None, Parameter(group=MORE)] = None
    """How often each agent plays each trial [1]."""
    reply_seconds: Annotated[float | None, Parameter(group=MORE, metavar="SECONDS")] = None
    """How long a reply may take [60]."""
    token_limit: Annotated[Whole | None, Parameter(group=MORE, metavar="TOKENS")] = None
    """Tokens that a language model may use in a cell; then the trial ends as truncated."""

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of an experiment that were given."""
        from openfield.runner.experiment import parse_settings

        found = {key: value for key, value in asdict(self).items() if value is not None}
        pairs = found.pop("set_", None)
        settings = {"settings": parse_settings(pairs)} if pairs else {}
        limits = {key: found.pop(name) for name, key in LIMITS.items() if name in found}
        return {**found, **settings, **({"limits": limits} if limits else {})}


NO_OPTIONS = ExperimentOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class RecordOptions:
    """What becomes of earlier cells, and what the record says about the command."""

    keep: Annotated[bool, Parameter(group=MORE)] = False
    """Keep the cells that an earlier version of an agent played, and mark them."""
    note: Annotated[str, Parameter(group=MORE, metavar="TEXT")] = ""
    """A note for the record. Reports print it."""
    tag: Annotated[list[str] | None, Parameter(group=MORE, metavar="NAME", consume_multiple=False)] = None
    """A word to find the run by. Repeat it for further ones."""

    save_seconds: Annotated[Seconds | None, Parameter(group=MORE)] = None
    """Seconds between two states of an agent with save(), at least [30]."""
    record: RecordChoice = None
    """Record digests of pictures and other large arrays, or keep them in full [as begun, or digests]."""

    def change(self, plan: Plan) -> Plan:
        """Return a plan with how often agents are saved and what is kept of large arrays, if that was given."""
        given = {"save_seconds": self.save_seconds, "record": self.record}
        return replace(plan, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]

    def remarks(self, experiment: Path | None = None) -> Remarks:
        """Return what is recorded about the command, with its experiment file."""
        from openfield.provenance.provenance import Remarks

        return Remarks(self.note, tuple(self.tag or ()), experiment)


NO_REMARKS = RecordOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class ClusterOptions:
    """Where cells are played, and what agents need there."""

    executor: Annotated[str | None, Parameter(group=MORE)] = None
    """`processes`, `ray` for a Ray cluster that is started here, or `ray=HOST:PORT` [processes]."""
    resources: Annotated[list[str] | None, Parameter(group=MORE, metavar="AMOUNTS", consume_multiple=False)] = None
    """What agents need of a machine of a cluster: `num_gpus=1,num_cpus=2`, or `AGENT:num_gpus=1` for one of them."""

    def apply(self, plan: Plan) -> Plan:
        """Return the plan with what agents need, beside what is known of it."""
        from openfield.runner.cluster import assign_resources, parse_resources

        given_now = parse_resources(self.resources or ())
        return replace(plan, resources=assign_resources(plan.agents, plan.resources, given_now))

    def check(self, players: Players) -> Players:
        """Return what plays; refuse to be told what agents need where that means nothing."""
        from openfield.runner.cluster import Cluster

        if self.resources and not isinstance(players, Cluster):
            raise InvalidInput("--resources is about machines of a cluster. Add --executor ray.")
        return players


HERE = ClusterOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class PaceOptions:
    """How much of a plan is played, and for how long."""

    share: Annotated[str | None, Parameter(group=MORE, metavar="NUMBER/OF")] = None
    """Play only this share of the cells, counted from 0: `3/100`. `openfield merge` joins the shares."""
    budget: Annotated[str | None, Parameter(group=MORE, metavar="TIME")] = None
    """Start no further cell after this time, such as `2h` or `90m`."""
    run_token_limit: Annotated[Count | None, Parameter(group=MORE, metavar="TOKENS")] = None
    """Stop when the language models of the run have used so many tokens. A higher limit goes on."""

    def apply(self, plan: Plan) -> Plan:
        """Return the plan within these limits."""
        from openfield.runner.experiment import parse_budget
        from openfield.runner.shares import parse_share, share_plan

        shared = plan if self.share is None else share_plan(plan, parse_share(self.share))
        budget = None if self.budget is None else parse_budget(self.budget)
        return replace(shared, budget=budget, tokens=self.run_token_limit)


ALL = PaceOptions()
