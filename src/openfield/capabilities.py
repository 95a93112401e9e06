"""What a domain may bring beyond `Domain`, one small Protocol each.

A domain has a capability by having its members; it need not name the Protocol. The parts of openfield that use one ask
with `isinstance`, or read the attribute with a default, and do without where it is missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from openfield.core import AgentFactory, Belief, PhaseName, Reply, Spec, World
from openfield.domain import Domain, check_version
from openfield.errors import InvalidInput
from openfield.parameters import strip_parameters
from openfield.record import EpisodeEnd
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.agents.play_page import PlayPage
    from openfield.agents.turn_writer import TurnWriter
    from openfield.journal.reader import CellRecord, Episode
    from openfield.journal.writer import Journal
    from openfield.options import CommandOptions
    from openfield.serving.wire import Dispatcher, Serving, Wire

__all__ = [
    "AdaptsAgents",
    "CharacterisesNovelties",
    "ChecksEnd",
    "Curriculum",
    "DiagnosesInstallation",
    "EncodesActions",
    "EncodesObservations",
    "FillsPool",
    "Film",
    "GeneratesTrials",
    "GuidesChecks",
    "HasCommands",
    "HasCurriculum",
    "HasDemo",
    "HasDetectionRule",
    "HasDispatcher",
    "HasExports",
    "HasFigures",
    "HasFilm",
    "HasGymSettings",
    "HasHuman",
    "HasOptions",
    "HasOracles",
    "HasPlayPage",
    "HasScriptedPeer",
    "HasVectorEnv",
    "HasWire",
    "ImportedEpisode",
    "ImportedTrial",
    "ImportsAgents",
    "ImportsResults",
    "ListsTrials",
    "NamesCode",
    "NeedsExtra",
    "PreparesTrials",
    "RemarksTrials",
    "ShowsProgress",
    "SpeaksLetters",
    "WritesTurns",
    "is_oracle",
    "list_oracles",
    "make_film",
]


# What is played.


@runtime_checkable
class NeedsExtra(Protocol):
    """Needs an optional part of openfield: `extra = "birds"` and `modules = ("Box2D",)`, which it then can import."""

    extra: str
    modules: tuple[str, ...]


@runtime_checkable
class PreparesTrials(Protocol):
    """Prepares once what many trials share: Doom packs the maps of a run into one file."""

    def expect(self, trials: Iterable[Trial]) -> None:
        """Take note of the trials that may be played in this process."""
        ...


@runtime_checkable
class ListsTrials(Protocol):
    """Takes its trials from a file that lists them, so that a number of trials makes no sense: Birds' `--config`."""

    def lists_trials(self, settings: Any) -> str:
        """Return why a number of trials is refused under these settings; empty where it is not."""
        ...


@runtime_checkable
class NamesCode(Protocol):
    """Has settings that name code of users, which runs when a trial is played: the tasks and worlds of CommAI."""

    def list_code(self, trial: Trial) -> list[str]:
        """Return the code that a trial names, as `file.py` or `package.module:NAME`, without importing any of it."""
        ...


@runtime_checkable
class ChecksEnd(Protocol):
    """Has settings under which a trial never ends by itself, which `openfield run` must refuse."""

    def check_end(self, settings: Any, seed: int) -> None:
        """Raise `InvalidInput` if trials with these settings would never end."""
        ...


@runtime_checkable
class GeneratesTrials(Protocol):
    """Draws trials from a description of its own: `openfield generate birds configMeta.xml`."""

    def generate(self, source: Path, seed: int, **settings: Any) -> str:
        """Return the text of a file that lists the trials drawn from a description."""
        ...


@runtime_checkable
class FillsPool(Protocol):
    """Makes more of the levels that its trials use: `openfield generate birds --pool FOLDER`."""

    def fill_pool(self, folder: Path, count: int, seed: int) -> Iterator[Path]:
        """Write `count` variations of each kind of level and yield every file."""
        ...


# Who plays.


@runtime_checkable
class AdaptsAgents(Protocol):
    """Takes agents written for the original system: CommAI's learners are classes with `next(byte)`."""

    def adapt(self, found: Any, parameters: Mapping[str, Any]) -> AgentFactory | None:
        """Return a factory of agents for an object a user named; None if it is not of the domain's own kind.

        Args:
            found: The object.
            parameters: What the user wrote in brackets behind it.
        """
        ...


@runtime_checkable
class ImportsAgents(Protocol):
    """Imports the modules that users name in a way of its own: CommAI's may import packages of the original system."""

    def import_module(self, name: str) -> ModuleType:
        """Import a module by its dotted name."""
        ...

    def prepare_module(self, module: ModuleType) -> None:
        """Prepare a module that was made from a file, before its code runs."""
        ...


@runtime_checkable
class HasOracles(Protocol):
    """Brings agents that are shown the world itself: `oracles = ("oracle",)`. They are ceilings, not competitors."""

    oracles: Sequence[str]


def list_oracles(domain: Domain[Any]) -> Sequence[str]:
    """Return the names of the agents that are shown the world."""
    return domain.oracles if isinstance(domain, HasOracles) else ()


def is_oracle(source: Any, domain: Domain[Any]) -> bool:
    """Return whether the source of an agent is that of one that is shown the world."""
    return isinstance(source, str) and strip_parameters(source) in list_oracles(domain)


@runtime_checkable
class HasHuman(Protocol):
    """Lets a person play in its own way: Birds' player types angles."""

    def view(self) -> AgentFactory:
        """Return the agent through which a person plays. With `may_leave = True` it may raise `Cancelled` to stop."""
        ...


@runtime_checkable
class HasPlayPage(Protocol):
    """Lets a person play in a browser in its own way. Other domains get keys for their actions, or a line to type."""

    def play_page(self, trial: Trial) -> PlayPage:
        """Return how a person plays this trial."""
        ...


@runtime_checkable
class WritesTurns(Protocol):
    """Says its turns in words, and reads actions from JSON, better than is possible for any `Spec`."""

    def turn_writer(self, spec: Spec) -> TurnWriter:
        """Return a fresh writer for a trial."""
        ...


@runtime_checkable
class HasWire(Protocol):
    """Speaks the protocol of the original system: Doom's is AMQP. Other domains are served as JSON lines over TCP."""

    def wire(self) -> Wire:
        """Return the protocol that foreign agents speak."""
        ...


@runtime_checkable
class HasDispatcher(Protocol):
    """Decides itself which trial a foreign agent gets: OND's agents choose the tests of a session."""

    def open_dispatcher(self, journal: Journal, trials: Sequence[Trial], serving: Serving) -> tuple[Wire, Dispatcher]:
        """Return what `openfield serve` needs: the wire, and the dispatcher that assigns trials to its agents."""
        ...


# What its commands are.


@runtime_checkable
class HasOptions(Protocol):
    """Has options of its own for `openfield run`, `play` or `serve`: `openfield serve doom --amqp URL`."""

    def options(self, command: str) -> type[CommandOptions] | None:
        """Return the dataclass of options that a command takes, or None; import it here, not with the domain."""
        ...


@runtime_checkable
class HasCommands(Protocol):
    """Has commands of its own: `commands = {"score": "module:function"}` is called as `openfield ond score`.

    Cyclopts parses the parameters of the function; its docstring is the help.
    """

    commands: Mapping[str, str]


# What is made of it.


@runtime_checkable
class HasDetectionRule(Protocol):
    """Reads beliefs by a rule that depends on the trial: OND's threshold is a setting."""

    def detection_rule(self, trial: Trial) -> Callable[[Belief], bool]:
        """Return the function that says whether a belief is a detection in this trial."""
        ...


@runtime_checkable
class ShowsProgress(Protocol):
    """Says more beside the progress bar than the performance: Birds shows the score."""

    def progress(self, episode: EpisodeEnd) -> str:
        """Return a few words about an episode that ended."""
        ...


@runtime_checkable
class RemarksTrials(Protocol):
    """Has settings that change what its numbers mean, which a report must say: Doom's `death_counts`."""

    def remark(self, trial: Trial) -> str:
        """Return what a reader of the numbers must know of a trial, in a few words; empty if there is nothing."""
        ...


@runtime_checkable
class EncodesObservations(Protocol):
    """Makes observations coarse enough to be counted: Doom puts positions into squares."""

    def encode(self, observation: Any) -> Any:
        """Return a hashable key of an observation, or a picture: an array of (H, W) or (H, W, 3)."""
        ...


@runtime_checkable
class EncodesActions(Protocol):
    """Makes actions coarse enough to be counted: Birds keeps the direction of a shot."""

    def encode_action(self, action: Any) -> Any:
        """Return a hashable key of an action."""
        ...


@runtime_checkable
class CharacterisesNovelties(Protocol):
    """Lets agents name what has changed: Doom's novelties are entity, attribute and change."""

    def characterise(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the true characterisation of these novelties."""
        ...


class Curriculum(NamedTuple):
    """What is known of the tasks of a trial before it is played."""

    tasks: tuple[str, ...]
    """The names of its tasks in order, each once; empty where only playing tells."""
    steps: int
    """The steps in which all tasks must be solved, a retest not counted."""
    task_steps: int | None
    """The steps that each task has for itself, whatever the others take; None if they share all steps."""
    retested: bool
    """Whether the tasks come again at the end."""
    strict: bool
    """Whether a task can be solved strictly, or is left before."""


@runtime_checkable
class HasCurriculum(Protocol):
    """Plays tasks one after the other, which the metrics `gradual` and `borders` measure."""

    def curriculum(self, trial: Trial) -> Curriculum:
        """Return the curriculum of a trial. It may run no code that the trial names."""
        ...


class Film(NamedTuple):
    """A world that draws, and its pictures. `world.look("picture")` is one of now; None if there is nothing to see."""

    world: World
    pictures: Callable[[], Iterable[Any]]
    """Returns the pictures since its last call: arrays of height, width and three colours, a byte each."""
    milliseconds: float
    """How long each picture is shown."""
    skip: Callable[[Sequence[Episode]], bool] | None = None
    """Lets `world.reset()` begin after these episodes, without playing them; False if it cannot. A viewer wants the
    first picture of a late episode at once."""


@runtime_checkable
class HasFilm(Protocol):
    """Can be watched: `openfield show RUN --cell CELL --film out.webp`, and the render modes of Gymnasium."""

    def film(self, trial: Trial) -> Film:
        """Return a world of the trial that draws for people."""
        ...


def make_film(domain: Domain[Any], trial: Trial) -> Film:
    """Return the film of a trial, or refuse if the domain draws nothing."""
    if not isinstance(domain, HasFilm):
        raise InvalidInput(f"{domain.name} draws no pictures.")
    check_version(domain, trial)
    return domain.film(trial)


@runtime_checkable
class SpeaksLetters(Protocol):
    """Exchanges letters as their codes: `letters = True` lets viewers show whole numbers in CommAI's turns as such."""

    letters: Literal[True]


@runtime_checkable
class HasFigures(Protocol):
    """Adds figures of its own to the report page."""

    def draw_figures(self, played: Mapping[str, Sequence[CellRecord]], baseline: str | None = None) -> str:
        """Return HTML about the scored cells of each agent, with every value escaped.

        Args:
            played: The scored cells of each agent.
            baseline: The agent that others are compared with, if the user named one.
        """
        ...


@runtime_checkable
class HasExports(Protocol):
    """Writes formats of its own: `exports = {"logs": "module:function"}` for `openfield export --format logs`.

    The function takes a run file, where to write, and a cell's id, and returns a line about what it wrote.
    """

    exports: Mapping[str, str]


class ImportedEpisode(NamedTuple):
    """The result of an episode that was played elsewhere."""

    phase: PhaseName
    novel: bool
    performance: float
    belief: Belief | None = None
    detail: Any = None
    """What the domain's own worlds tell of an episode in `Truth.detail`, as far as it is known."""


class ImportedTrial(NamedTuple):
    """The results of an agent in a trial that was played elsewhere; `trial.imported` names their file."""

    agent: str
    trial: Trial
    episodes: Sequence[ImportedEpisode]


@runtime_checkable
class ImportsResults(Protocol):
    """Reads results of the original system: `openfield import birds EvaluationData.csv`."""

    def import_results(self, sources: Sequence[Path], agent: str | None = None) -> Iterable[ImportedTrial]:
        """Return the results in some files, all under one agent's name or under the names that the files have."""
        ...


# How it is shown and checked.


@runtime_checkable
class HasDemo(Protocol):
    """Says what `openfield demo` plays: `demo_agents = ("compass", "random")`, a novelty and settings."""

    demo_agents: Sequence[str]
    demo_novelty: str | None
    demo_settings: Mapping[str, Any]


@runtime_checkable
class DiagnosesInstallation(Protocol):
    """Knows what `openfield doctor` should say of what it needs: Doom knows whether vizdoom's memory can be read."""

    def diagnose(self) -> str:
        """Return what a user should know, in a sentence or two; empty if all is well."""
        ...


@runtime_checkable
class HasGymSettings(Protocol):
    """Names its Gymnasium environment and changes settings for it: `gym_settings = {"observe": "array"}`."""

    gym_name: str
    gym_settings: Mapping[str, Any]


@runtime_checkable
class HasVectorEnv(Protocol):
    """Steps many environments at once: `gym_vector = "my_domain.vector_env:MyVectorEnv"`, for `gymnasium.make_vec`."""

    gym_vector: str


@runtime_checkable
class GuidesChecks(Protocol):
    """Tells the conformance kit what it cannot know.

    `check_settings` are the settings of its trials. `shown_detail` are keys of the truth's detail that agents may see,
    `shown_effects` keys of observations that are meant to give the change away. A `check_patience` beside them is how
    many seconds a world may need for one answer, if 5 are not enough.
    """

    check_settings: Mapping[str, Any] | None
    shown_detail: Sequence[str]
    shown_effects: Sequence[str]


@runtime_checkable
class HasScriptedPeer(Protocol):
    """Lets the conformance kit speak its wire: a client that plays given replies.

    A `scripted_agent` beside it names the agent whose replies the wire can carry.
    """

    def scripted_peer(self, host: str, port: int, replies: Sequence[Reply]) -> Awaitable[None]:
        """Play these replies over the wire of a server."""
        ...
