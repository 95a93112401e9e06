"""What a domain may bring beyond the attributes of `Domain`, one small Protocol each.

A domain has a capability by having its members; it need not name the Protocol. The parts of openfield that use one ask
with `isinstance`, and do without where it is missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from openfield.core import AgentFactory, Reply, Spec, World
from openfield.domain import Domain, check_version
from openfield.errors import InvalidInput
from openfield.parameters import AgentText, read_agent
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.agents.play_page import PlayPage
    from openfield.agents.turn_writer import TurnWriter
    from openfield.journal.reader import Episode
    from openfield.journal.writer import Journal
    from openfield.options import CommandOptions
    from openfield.serving.wire import Dispatcher, Serving, Wire

__all__ = [
    "AdaptsAgents",
    "CharacterisesNovelties",
    "Curriculum",
    "Family",
    "Film",
    "HasCurriculum",
    "HasDispatcher",
    "HasFilm",
    "HasOptions",
    "HasPlayPage",
    "HasScriptedPeer",
    "HasWire",
    "LeavesEpisodes",
    "PreparesTrials",
    "WritesTurns",
    "is_oracle",
    "make_film",
]


# How it is played.


@runtime_checkable
class PreparesTrials(Protocol):
    """Prepares once what many trials share: Doom packs the maps of a run into one file."""

    def expect(self, trials: Iterable[Trial]) -> None:
        """Take note of the trials that may be played in this process."""
        ...


@runtime_checkable
class LeavesEpisodes(Protocol):
    """A world, not a domain, in which an episode can be left: wrappers of Gymnasium that limit its length do so."""

    def leave_episode(self) -> bool:
        """Let `reset` begin the episode after this one; return False after the last one."""
        ...


class Family(Protocol):
    """Domains that are named `PREFIX:TEXT`, such as `gym:CartPole-v1`. Packages offer families as entry points.

    Their names begin with the prefix and a hyphen. Importing a family imports nothing that a run file names.
    """

    def open_domain(self, text: str) -> Domain[Any]:
        """Return the domain that a text names."""
        ...

    def add_settings(self, text: str, settings: Mapping[str, Any]) -> str:
        """Return the text with those settings in it that decide which domain it names, if there are any."""
        ...

    def make_absolute(self, text: str) -> str:
        """Return the text as a process in another folder can use it."""
        ...

    def strip_data(self, text: str) -> str:
        """Return the part of a text that may name code, without files of data."""
        ...

    def list_code(self, trial: Trial) -> list[str]:
        """Return the code that a trial of such a domain names, as `file.py` or `package.module:NAME`."""
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


def is_oracle(source: Any, domain: Domain[Any]) -> bool:
    """Return whether the source of an agent is that of one that is shown the world."""
    return isinstance(source, str | AgentText) and read_agent(source).place in domain.oracles


@runtime_checkable
class HasPlayPage(Protocol):
    """Lets a person play in a browser in its own way. Other domains get keys for their actions, or a line to type."""

    def play_page(self, trial: Trial) -> PlayPage:
        """Return how a person plays this trial."""
        ...


@runtime_checkable
class WritesTurns(Protocol):
    """Says its turns in words, and reads actions from JSON or a typed line, better than is possible for any `Spec`."""

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


# Its options.


@runtime_checkable
class HasOptions(Protocol):
    """Has options of its own for `openfield run`, `play`, `serve` or `score`: `openfield serve doom --amqp URL`."""

    def options(self, command: str) -> type[CommandOptions] | None:
        """Return the dataclass of options that a command takes, or None; import it here, not with the domain."""
        ...


# Its results.


@runtime_checkable
class CharacterisesNovelties(Protocol):
    """Lets agents name what has changed: Doom's novelties are entity, attribute and change."""

    def characterise(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the true characterisation of these novelties."""
        ...


class Curriculum(NamedTuple):
    """The tasks of a trial as known before it is played."""

    tasks: tuple[str, ...]
    """The names of its tasks in order, each once; empty where that is known only from playing."""
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


# How it is shown and checked.


@runtime_checkable
class HasScriptedPeer(Protocol):
    """Lets the conformance kit speak its wire: a client that plays given replies.

    A `scripted_agent` beside it names the agent whose replies the wire can carry.
    """

    def scripted_peer(self, host: str, port: int, replies: Sequence[Reply]) -> Awaitable[None]:
        """Play these replies over the wire of a server."""
        ...
