"""Experiments of protocol 0.8: training once, then groups of trials by visibility, novelty, difficulty and hint.

A server makes one for each model that registers, from its configuration.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from openfield.domains.doom.settings import DoomSettings
from openfield.domains.doom.trials import compose, compose_training, episode_seeds
from openfield.domains.doom.wire.ini import ServerConfig
from openfield.domains.doom.wire.messages import RequestExperiment
from openfield.errors import AgentFault, InvalidInput, UnknownName
from openfield.journal.reader import SCORED
from openfield.registry import load
from openfield.runner.plan import MAX_NAME, check_agent_name
from openfield.serving.dispatch import SingleDispatcher, TrialDispatcher
from openfield.serving.remote import RemoteRollout
from openfield.settings import make_settings
from openfield.trial import Limits, Phase, Trial, derive, with_changes, with_limits

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain

NORMAL = (0, 50, 200)
"""The numbers that stand for no novelty."""
DUEL_NAMES = {51: "slim", 52: "tough", 53: "buckets"}
"""The duel's novelties by their published numbers."""
SHORT_LIMIT, FULL_LIMIT = 200, 2000
"""Ticks of an episode of `shortdemo`, and those that performance is scaled to."""
MAX_MODEL_NAME = MAX_NAME - 9
"""Characters of a model's name; the mark of its secret follows."""
MAX_FACT = 2000


class TrialGroup(msgspec.Struct, frozen=True):
    """Trials that differ only in their seeds."""

    visibility: int
    novelty: int
    difficulty: str
    hint: int


def list_groups(config: ServerConfig) -> Iterator[TrialGroup]:
    """Yield all groups in the published order; only announced novelties have hints."""
    for visibility in config.novelty_visibility:
        for novelty in config.novelty:
            hinted = visibility == 1 and novelty not in NORMAL
            for difficulty in config.difficulty:
                for hint in config.hint_level if hinted else (-1,):
                    yield TrialGroup(visibility, novelty, difficulty, hint)


def make_experiment_trials(
    config: ServerConfig, seed: int, episode_seed: int | None = None, epoch: float | None = None
) -> list[Trial]:
    """Make the trials of an experiment: training first, then group by group.

    Args:
        config: What the server's file says.
        seed: The root of all seeds.
        episode_seed: The seed of every episode; None draws them.
        epoch: When time stamps begin; None is the usual moment, which does not depend on the clock.
    """
    domain = domain_of(config)
    begin = {} if epoch is None else {"epoch": epoch}
    chosen = make_settings(domain.settings, _settings(config, episode_seed) | begin)
    training = domain.training_trial(chosen, seed, _training_phases(config, domain, seed))
    made = [training] if training is not None else []
    for group in list_groups(config):
        names = novelty_names(domain, group.novelty, group.difficulty)
        settings = chosen if domain.name == "doom" else msgspec.structs.replace(chosen, hint_level=group.hint)
        played: set[int] = set()
        for number in range(config.trials):
            for root in _roots(seed, domain.name, *msgspec.structs.astuple(group), number):
                phases = compose(settings, names, root)
                trial = domain.test_trial(settings, root, phases, group.visibility == 1, training)
                seeds = episode_seeds(trial, episode_seed)
                if episode_seed is not None or played.isdisjoint(seeds):
                    break
            played.update(seeds)
            made.append(trial)
    return made


def _training_phases(config: ServerConfig, domain: DoomDomain, seed: int) -> tuple[Phase, ...]:
    """Compose the training: a share of the episodes has any novelty and difficulty of the configuration."""
    changes = [number for number in config.novelty if number not in NORMAL]
    kinds = [novelty_names(domain, number, difficulty) for number in changes for difficulty in config.difficulty]
    if config.training_novelty_p1 and not kinds:
        raise InvalidInput(f"training_novelty_p1 is {config.training_novelty_p1:g}, but the file names no novelty.")
    return compose_training(config.training_episodes, config.training_novelty_p1, kinds, seed)


def _roots(*path: Any) -> Iterator[int]:
    """Yield seeds for a trial: the next one is used if the trial would share an episode with another of its group."""
    yield derive(*path)
    yield from (derive(*path, "again", count) for count in itertools.count())


def episode_seed(generator: dict[str, Any]) -> int | None:
    """Return the seed an agent wants for every episode, or None; refuse one the engine does not take."""
    return make_settings(DoomSettings, {"episode_seed": generator.get("episode_seed")}).episode_seed


def reseeded(trials: list[Trial], seed: int | None, episode_seed: int | None) -> list[Trial]:
    """Return the same trials with the seeds an agent asks for, if any."""
    forced = {} if episode_seed is None else {"episode_seed": episode_seed}

    def change(trial: Trial) -> Trial:
        root = trial.seed if seed is None else derive(seed, trial.seed)
        return msgspec.structs.replace(trial, seed=root, settings={**trial.settings, **forced})

    return with_changes(trials, change)


def without_reply_limits(trials: list[Trial]) -> list[Trial]:
    """Return the same trials without a limit for single replies: the protocol has one for the whole session."""
    return with_limits(trials, lambda _: Limits(reply_seconds=None))


def domain_of(config: ServerConfig) -> DoomDomain:
    """Return the domain: the duel for phase 1, else the arena."""
    domain: DoomDomain = load(f"openfield.domains.doom:{'DUEL' if config.phase == '1' else 'ARENA'}")
    return domain


def novelty_names(domain: DoomDomain, number: int, difficulty: str) -> tuple[str, ...]:
    """Return the names of the novelty with a published number; none if the number stands for no novelty.

    Raises:
        UnknownName: There is no such novelty; the message lists those there are.
        InvalidInput: There is no such difficulty.
    """
    if difficulty not in ("easy", "medium", "hard"):
        raise InvalidInput(f"Unknown difficulty '{difficulty}'. Known: easy, medium, hard.")
    if number in NORMAL:
        return ()
    names = DUEL_NAMES if domain.name == "doom" else {int(novelty.name): novelty.name for novelty in domain.novelties}
    if number not in names:
        raise UnknownName("novelty", str(number), map(str, names), label=f"Of {domain.name}")
    name = names[number]
    graded = [novelty.id for novelty in domain.novelties if novelty.name == name and novelty.difficulty]
    return domain.novelty_names(f"{name}:{difficulty}" if graded else name)


def agent_name(model: str, secret: str) -> str:
    """Return the agent's name in the record: the model's name, and a mark made from its secret."""
    name = f"{_read_model(model).model_name}{_mark(secret)}"
    check_agent_name(name)
    return name


def describe_registration(request: RequestExperiment, name: str) -> dict[str, str]:
    """Return a registration's description of a model, for the record; the user's secret is left out."""
    asked = {"experiment": request.description, "git_version": request.git_version, "seed": request.seed}
    said = msgspec.structs.asdict(_read_model(request.model)) | asked
    return {f"registration of {name}": msgspec.json.encode(said).decode()[:MAX_FACT]}


def experiment_number(secret: str) -> int:
    """Return an experiment's number in messages, the same in every session: a part of the mark in its name."""
    return int(_mark(secret)[1:8], 16)


def _mark(secret: str) -> str:
    return f"-{hashlib.sha256(secret.encode()).hexdigest()[:8]}"


async def find_experiment(dispatcher: TrialDispatcher, secret: str) -> ExperimentTrials:
    """Find the experiment with a secret, even if its model has another name now; its training must be done."""
    names = [name for name in await dispatcher.agents() if name.endswith(_mark(secret))]
    if not names:
        raise AgentFault("there is no experiment with this secret")
    known = await dispatcher.enrolled(names[0])
    if any(record.trial.is_training and record.outcome not in SCORED for record in known):
        raise AgentFault("the training of this experiment is not done; its trials start from the trained model")
    tests = sum(not record.trial.is_training for record in known)
    if not await dispatcher.count_left(names[0]):
        raise AgentFault(f"this experiment has no trial left: all its {tests} trials are played or in progress")
    return ExperimentTrials(dispatcher, names[0], [record.trial for record in known])


def _read_model(model: str) -> _Model:
    try:
        return msgspec.json.decode(model, type=_Model)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentFault(f"the model is not a JSON text with a model_name: {error}") from None


class _Model(msgspec.Struct):
    model_name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_MODEL_NAME)]
    organization: Any = None
    description: Any = None
    aiq_username: Any = None


def _settings(config: ServerConfig, episode_seed: int | None) -> dict[str, Any]:
    values: dict[str, Any] = {
        "training": config.training_episodes,
        "episodes": config.testing_episodes,
        "before": config.pre_novel_episodes,
        "share": config.testing_novelty_p2,
        "light_stays": True,
        "episode_seed": episode_seed,
        "use_image": config.use_image,
    }
    published = {"death_counts": False} if domain_of(config).name == "doom" else {"map": "published"}
    short = {"limit": SHORT_LIMIT, "score_ticks": FULL_LIMIT} if config.shortdemo else {}
    return values | published | short


def number_trials(trials: list[Trial]) -> dict[str, int]:
    """Number trials from 0 on within their groups, by their ids. The trials of a command are one group."""
    counts: Counter[Any] = Counter()
    numbers = {}
    for trial in trials:
        novelties = frozenset(name for phase in trial.phases for name in phase.novelty)
        group = trial.scenario or (trial.red_light, novelties, trial.settings.get("hint_level"))
        numbers[trial.id] = counts[group]
        counts[group] += 1
    return numbers


def _trial_of(remote: RemoteRollout) -> Trial:
    trial: Trial = getattr(remote.rollout.world, "trial")  # noqa: B009  every world of this domain has it
    return trial


class ExperimentTrials:
    """The trials of one experiment at a dispatcher that has many."""

    def __init__(
        self, dispatcher: TrialDispatcher, name: str, trials: list[Trial], facts: Mapping[str, str] | None = None
    ) -> None:
        self._dispatcher = dispatcher
        self._name = name
        self._new: list[Trial] = trials
        """Trials to enroll before the first rollout; empty if they are in the record already."""
        self._facts = dict(facts or {})
        tests = [trial for trial in trials if not trial.is_training]
        self.trials = len(tests)
        self._numbers = number_trials(tests)

    def number(self, remote: RemoteRollout) -> int:
        """Return the number of a rollout's trial in its group."""
        return self._numbers[_trial_of(remote).id]

    def note_machine(self, facts: dict[str, Any]) -> None:
        """Record the machine the agent runs on."""
        self._facts[f"machine of {self._name}"] = msgspec.json.encode(facts).decode()[:MAX_FACT]

    async def settle(self) -> None:
        """Record the rollouts that are over."""
        await self._dispatcher.settle()

    async def start(self, training: bool) -> RemoteRollout | None:
        """Start the training or the next trial; return None after the last."""
        if self._new:
            await self._dispatcher.enroll(self._name, self._new, self._facts)
            self._new = []
        return await self._dispatcher.start(self._name, training)


class SingleTrial:
    """The one trial of a program that plays one cell."""

    trials = 1

    def __init__(self, dispatcher: SingleDispatcher, known: str, secret: str) -> None:
        """Check the secret that the agent knows its experiment by."""
        if secret != known:
            raise AgentFault("there is no experiment with this secret")
        self._dispatcher = dispatcher

    def number(self, remote: RemoteRollout) -> int:
        """Return 0: there is no other trial."""
        return 0

    def note_machine(self, facts: dict[str, Any]) -> None:
        """Do nothing: the program runs on this machine."""

    async def start(self, training: bool) -> RemoteRollout | None:
        """Return the rollout if its trial is of this kind."""
        try:
            remote = await self._dispatcher.join()
        except AgentFault:
            return None
        return remote if (remote.rollout.turn.phase == "training") is training else None

    async def settle(self) -> None:
        """Do nothing: the runner records this rollout."""


TrialSource = ExperimentTrials | SingleTrial
"""Gives a session its rollouts."""
