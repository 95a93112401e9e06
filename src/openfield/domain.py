"""A domain is a family of worlds: its settings, novelties, trials and the agents that come with it.

The registry finds domains by name; plans ask them for trials, rollouts for worlds, reports for words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec
import numpy as np

from openfield.core import AgentFactory, Belief, Spec, World
from openfield.errors import InvalidInput, OpenfieldError
from openfield.journal.steps import KEY_ENCODER, EpisodeEnd
from openfield.novelty import Novelty, apply_novelties, check_effect, find_novelty
from openfield.options import Flag, Launch
from openfield.settings import Settings, changed_settings, make_settings
from openfield.trial import Limits, Phase, Trial, derive

if TYPE_CHECKING:
    from openfield.journal.reader import CellRecord
    from openfield.journal.writer import Journal
    from openfield.report.film import Film
    from openfield.serving.dispatch import Closable, Serving, Wire

S = TypeVar("S", bound=Settings)


class Domain(ABC, Generic[S]):
    """A family of worlds. Subclasses fill in the names below and write `spec`, `phases` and `world`."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Raised whenever the same trial would give other turns than before."""
    title: ClassVar[str]
    """The domain in one line, for lists and reports."""
    settings: type[S]
    novelties: Sequence[Novelty[S]] = ()
    agents: Mapping[str, AgentFactory | str] = {}
    """Agents that come with the domain: factories, or `module:attribute` to import them late."""
    oracles: Sequence[str] = ()
    """Those of its agents that are shown the world itself, by `attend(world)`: ceilings, not competitors."""
    metrics: Sequence[str] = ("performance", "detection", "adaptation")
    baseline: str = "random"
    """The agent that others are held against unless another is asked for."""
    default_novelty: str | None = None
    """What `run` takes when no novelty is named."""
    demo_agents: Sequence[str] = ()
    demo_novelty: str | None = None
    demo_settings: Mapping[str, Any] = {}
    """Who meets what, and under which settings, in the small evaluation that `openfield demo` shows."""
    check_settings: Mapping[str, Any] | None = None
    """Those of the conformance kit's trials, where `demo_settings` do not suit it."""
    shown_detail: Sequence[str] = ()
    """Keys of the truth's detail whose values are shown as well; for the kit, which would take them for leaks."""
    shown_effects: Sequence[str] = ()
    """Keys of what is shown that tell, and are meant to tell, that the world has changed; for the kit as well."""
    limits: Limits = Limits()
    flags: Sequence[Flag] = ()
    """What the domain adds to `openfield run`, `play` and `serve`."""
    gym_name: ClassVar[str] = ""
    """What Gymnasium calls the domain, if not by its name in camel case."""
    gym_settings: Mapping[str, Any] = {}
    """How the settings of the Gymnasium environment differ from the defaults."""
    extra: ClassVar[str] = ""
    """The optional part of openfield the worlds need."""
    modules: ClassVar[tuple[str, ...]] = ()
    """What can be imported when that part is installed."""
    exports: Mapping[str, str] = {}
    """What `openfield export --format NAME` writes beside tables: a `module:function` for each name, which takes a run
    file, where to write and a cell's id, and says in a line what it wrote."""

    @abstractmethod
    def spec(self, trial: Trial) -> Spec:
        """What an agent may know before this trial starts."""

    @abstractmethod
    def phases(self, settings: S, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """The script of a trial with these settings, and these novelties from the onset on."""

    @abstractmethod
    def world(self, trial: Trial) -> World:
        """The world of a trial, depending on nothing but the trial."""

    def expect(self, trials: Iterable[Trial]) -> None:
        """Told what may be played in this process, for domains that prepare once what many trials share."""

    def trials(
        self,
        count: int = 5,
        seed: int = 0,
        novelty: str | None = None,
        red_light: bool = False,
        **settings: Any,
    ) -> list[Trial]:
        """Trials that differ in their seeds only.

        Args:
            count: How many.
            seed: The root of all their seeds.
            novelty: `NAME[:difficulty]`, several joined by `+`, or `none`; the domain's default if not given.
            red_light: Whether agents are told when the world has changed.
            **settings: Changes of the domain's settings.

        Raises:
            InvalidInput: A setting cannot be what it is given as, or a novelty changes what it may not or is
                undone by another.
        """
        chosen = make_settings(self.settings, settings)
        names = self.novelty_names(novelty)
        self.check_novelties(chosen, names)
        phases = self.phases(chosen, names)
        return [
            Trial(
                domain=self.name,
                version=self.version,
                seed=derive(seed, self.name, number),
                phases=phases,
                settings=changed_settings(chosen),
                red_light=red_light,
                limits=self.limits,
            )
            for number in range(count)
        ]

    def lists_trials(self, settings: S) -> str:
        """What to say to who asks for a number of trials where a file lists them; nothing where none does."""
        return ""

    def check_end(self, settings: S, seed: int) -> None:
        """Refuses settings under which trials would go on for as long as an agent does; `openfield run` would hang."""

    def adapt(self, found: Any) -> AgentFactory | None:
        """A factory for what users of the domain write as agents, if that is not what openfield calls one."""
        return None

    def prepare(self, launch: Launch, command: str) -> Launch:
        """The launch of a command once all flags have been read: what several of them mean together."""
        return launch

    def detected(self, belief: Belief) -> bool:
        """Whether a belief says that the world has changed."""
        return says_novel(belief)

    def detection_rule(self, trial: Trial) -> Callable[[Belief], bool]:
        """How beliefs are read in a trial; `detected` for all, unless the trial itself sets a threshold."""
        return self.detected

    def progress(self, episode: EpisodeEnd) -> str:
        """What to show beside the progress bar when an episode ended."""
        return "" if episode.performance is None else f"performance {episode.performance:.2f}"

    def encode(self, observation: Any) -> Any:
        """What was seen, for measures that count it: something hashable and coarse, or a picture.

        A picture is an array of (H, W), or (H, W, 3) with colours; who counts makes it small and discretises it.
        """
        return observation if is_picture(observation) else KEY_ENCODER.encode(observation)

    def encode_action(self, action: Any) -> Any:
        """What was done, for measures that count it: something hashable, and coarse where actions hardly repeat."""
        return KEY_ENCODER.encode(action)

    def generate(self, source: Path, seed: int, **settings: Any) -> str:
        """Trials drawn from a description of the domain's own, as the text of a file that lists them."""
        raise OpenfieldError(f"{self.name} has no descriptions to generate trials from.")

    def fill_pool(self, folder: Path, count: int, seed: int) -> Iterator[Path]:
        """Writes more of the levels that trials are made of, so many variations of each kind; yields every file."""
        raise OpenfieldError(f"{self.name} has no levels to make more of.")

    def wire(self) -> Wire:
        """The protocol foreign agents speak; JSON lines over TCP unless the domain brings its own."""
        from openfield.serving.jsonlines import JsonLinesWire

        return JsonLinesWire()

    def open_dispatcher(self, journal: Journal, trials: Sequence[Trial], serving: Serving) -> tuple[Wire, Closable]:
        """What `openfield serve` needs: the wire, and the dispatcher its agents come to."""
        from openfield.serving.dispatch import TrialDispatcher

        return self.wire(), TrialDispatcher(journal, self, trials, serving.agent, serving.token)

    def draw_figures(self, played: Mapping[str, Sequence[CellRecord]], baseline: str | None = None) -> str:
        """What the report page shows of a scenario's agents beyond the common charts: HTML, everything escaped.

        Args:
            played: The scored cells of each agent.
            baseline: The agent that others are held against, if the user named one.
        """
        return ""

    def film(self, trial: Trial) -> Film:
        """A world of the trial that draws for people, to make films of recorded episodes in."""
        raise InvalidInput(
            f"{self.name} has nothing to be seen; openfield show RUN --cell CELL --turn N shows a turn in full."
        )

    def view(self) -> AgentFactory:
        """The agent through which a person plays: line by line unless the domain brings its own."""
        from openfield.agents.human import LineHuman

        return LineHuman

    def novelty_names(self, novelty: str | None) -> tuple[str, ...]:
        """The full names behind `a+b:hard`; `none` is no novelty, None the domain's default."""
        wanted = self.default_novelty or "none" if novelty is None else novelty
        if wanted == "none":
            return ()
        return tuple(find_novelty(self.novelties, name).id for name in wanted.split("+"))

    def check_novelties(self, settings: S, names: Sequence[str]) -> None:
        """Refuses novelties that take a setting out of its range, or of which one undoes another."""
        changed = apply_novelties(self.novelties, names, settings)
        try:
            make_settings(self.settings, msgspec.to_builtins(changed))
        except InvalidInput as error:
            raise InvalidInput(f"Novelty '{'+'.join(names)}' changes what it may not. {error}") from None
        check_effect(self.novelties, names, settings)

    def settings_in(self, trial: Trial, phase: Phase) -> S:
        """The settings in force in a phase of a trial: its own, changed by the phase's novelties."""
        settings = make_settings(self.settings, trial.settings)
        return apply_novelties(self.novelties, phase.novelty, settings)

    def characterise(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The novelties as entity, attribute and change, for domains whose agents may name these; else nothing."""
        return []

    def describe(self, names: Sequence[str]) -> str:
        """The novelties in words."""
        return "; ".join(find_novelty(self.novelties, name).note for name in names) or "no novelty"


def is_picture(observation: Any) -> bool:
    """The common rule: bytes in rows and columns, alone or with one, three or four channels, are a picture."""
    if not isinstance(observation, np.ndarray) or observation.dtype != np.uint8:
        return False
    return observation.ndim == 2 or (observation.ndim == 3 and observation.shape[2] in (1, 3, 4))


def spec_of(domain: Domain[Any], trial: Trial) -> Spec:
    """What the agent of a trial is told: the domain's words, and how long a reply may take."""
    return msgspec.structs.replace(domain.spec(trial), reply_seconds=trial.limits.reply_seconds)


def says_novel(belief: Belief) -> bool:
    """The common rule: a probability of one half or more, for any sample, says that the world has changed."""
    return belief.highest >= 0.5
