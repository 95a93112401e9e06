"""A trial as a Gymnasium environment: the caller's loop drives the rollout."""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from openfield import __version__
from openfield.capabilities import Film, HasFilm, LeavesEpisodes
from openfield.cell import Cell
from openfield.core import Ask, Belief, Reply, Turn, World
from openfield.domain import Domain
from openfield.errors import AgentProtocol, InvalidInput, MissingExtra, OpenfieldError, UnknownName
from openfield.journal.reader import Run
from openfield.journal.recorder import Recorder
from openfield.journal.writer import Journal
from openfield.lazy import import_extra
from openfield.provenance.rules import own_rule, write_rules
from openfield.provenance.trust import sign_code
from openfield.record import RECORD_FACT, UNWRITABLE, check_belief
from openfield.registry import (
    PluginWarning,
    absolute,
    domain_source,
    find_domain,
    installed_domains,
    list_trial_code,
    use_domain,
)
from openfield.rollout import Rollout
from openfield.runner.player import explain_failure
from openfield.settings import make_settings
from openfield.spaces import Box, Choice, Discrete, Fields, Sequence, Space, Text, Tuple, from_numpy, to_numpy
from openfield.trial import Limits, Trial

if TYPE_CHECKING:
    from openfield.options import RecordKind


try:
    import gymnasium
    from gymnasium.error import ResetNeeded
except ImportError:
    raise MissingExtra("gym", "openfield.gym") from None

NAMESPACE = "openfield"
RENDER_MODES = ["human", "rgb_array", "rgb_array_list"]


class DomainEnv(gymnasium.Env[Any, Any]):
    """A trial as a Gymnasium environment.

    `reset(seed=...)` starts the trial with that seed. Further resets go on with its next episode; after the last one a
    reset starts the trial again as a new repeat, and so does a reset amid an episode, which gives the old one up. Some
    domains (`gym_endless`), if they get no trial, draw another one then, so that no episode comes twice. If they record
    nothing, a reset before the end of an episode goes on to the next one.
    `info` holds what the turn shows beside the observation, and nothing of the truth.

    A domain that draws (`HasFilm`) has three render modes. `rgb_array` is the world as it is now. `rgb_array_list` is
    everything since the last call or reset, which in a world whose step takes time is a film of that step. `human`
    shows this film in a window.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": 30}

    def __init__(
        self,
        domain: str,
        trial: Trial | None = None,
        journal: str | Path | None = None,
        agent_name: str = "gym",
        render_mode: str | None = None,
        record: RecordKind | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Open a domain; the arguments are those of `gymnasium.make`.

        Args:
            domain: The domain's name, `module:attribute` or `file.py`.
            trial: The trial to play; by default the domain's first. The time between two steps is the caller's own,
                so the trial's limit for a reply does not hold here.
            journal: The run file; None records nothing.
            agent_name: The name results are recorded under.
            render_mode: `human`, `rgb_array` or `rgb_array_list` if the domain draws; None draws nothing.
            record: `digests` of pictures and other large arrays, or `full` to keep them; None goes on as the run file
                was begun.
            settings: Settings of the domain, if there is no trial, such as `{"frame_skip": 4}`.
        """
        if record is not None:
            from openfield.options import check_record_kind  # which loads what only command lines need

            check_record_kind(record)
        self._domain = find_domain(domain, settings)
        self._trial = choose_trial(self._domain, trial, settings)
        self._endless = trial is None and self._domain.gym_endless
        self._agent = agent_name
        self._belief: Belief | None = None
        self._rollout: Rollout | None = None
        self._seen: Any = None
        self._moved = False
        self.render_mode = render_mode
        self._film: Film | None = None
        self._pictures: list[Any] = []
        self.metadata = self._describe_rendering()
        self._window = Window(f"openfield {domain}", self.metadata["render_fps"]) if render_mode == "human" else None
        self._actions, self._observations = find_spaces(self._domain, self._trial)
        self.action_space, self.observation_space = to_gym(self._actions), to_gym(self._observations)
        self._journal = None if journal is None else Journal(journal)
        begun = self._journal is not None and self._journal.keeps_arrays
        self._full = begun if record is None else record == "full"
        self._facts = {} if record is None else {RECORD_FACT: record}

    @property
    def trial(self) -> Trial:
        """The trial that it plays."""
        return self._trial

    def believe(self, novel: float | tuple[float, ...], level: int | None = None, detail: Any = None) -> None:
        """Say what you think happened to the world; the belief goes with the next reply, also at an episode's end."""
        belief = Belief(novel, level, detail)
        try:
            check_belief(belief)
        except (*UNWRITABLE, msgspec.DecodeError) as error:
            raise InvalidInput(f"{belief} is not a belief: {error}.") from None
        self._belief = belief

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the trial anew if a seed is given; otherwise go on to its next episode."""
        super().reset(seed=seed)
        self._pictures = []
        if seed is not None:
            self._end()
            self._trial = msgspec.structs.replace(self._trial, seed=seed)
        leaves = self._moved or (self._endless and self._journal is None)  # where no episode comes twice, none is kept
        if self._rollout is not None and self._rollout.turn.last is not None:
            self._reply()
            leaves = False
        if self._rollout is None or self._rollout.over or leaves:
            self._rollout = self._leave_episode() or self._start_anew(seed)
            self._follow()
        self._moved = False
        while not self._rollout.over and self._rollout.turn.ask is not Ask.ACT:
            self._reply()
        if self._rollout.over:
            raise InvalidInput(f"Trial {self._trial.id} of {self._domain.name} asks for no action.")
        return self._show(self._rollout.turn), _info(self._rollout.turn)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action, and answer other questions until the next action is due or the episode ends."""
        rollout = self._rollout
        if rollout is None or rollout.over or rollout.turn.last is not None:
            raise ResetNeeded("The episode is over; call reset() to go on.")
        self._moved = True
        reward = self._act(action).reward
        while not rollout.over and rollout.turn.ask is not Ask.ACT and rollout.turn.last is None:
            reward += self._reply().reward
        turn = rollout.turn
        truncated = turn.last == "truncated" or (rollout.over and turn.last is None)
        return self._show(turn), float(reward), turn.last == "terminated", truncated, _info(turn)

    def render(self) -> Any:
        """Return what the render mode says: a picture, the pictures since the last call, or None."""
        if self.render_mode == "rgb_array_list":
            taken, self._pictures = self._pictures, []
            return taken
        if self.render_mode == "rgb_array":
            return self._draw()
        return None

    def close(self) -> None:
        """Record how the trial ended, as cancelled if it is not over, and close the run file and the window."""
        if self._rollout is not None and self._rollout.turn.last is not None and not self._rollout.over:
            self._reply()
        self._end()
        if self._journal is not None:
            self._journal.close()
        self._journal = None
        if self._window is not None:
            self._window.close()

    def _describe_rendering(self) -> dict[str, Any]:
        """Return the render modes of the domain and the pictures a second of its film; refuse any other mode."""
        if not isinstance(self._domain, HasFilm):
            if self.render_mode is not None:
                raise InvalidInput(f"{self._domain.name} draws no pictures: its render_mode is None.")
            return {"render_modes": []}
        if self.render_mode is None:
            return DomainEnv.metadata
        if self.render_mode not in RENDER_MODES:
            raise UnknownName("render_mode", str(self.render_mode), RENDER_MODES, label="Known")
        film = self._domain.film(self._trial)
        film.world.close()
        return {"render_modes": RENDER_MODES, "render_fps": 1000 / film.milliseconds}

    def _draw(self) -> Any:
        """Return a picture of now, or the last one if the world draws none between two episodes."""
        if self._film is None:
            raise ResetNeeded("Call reset() before render().")
        picture = self._film.world.look("picture")
        if picture is not None:
            self._pictures = [picture]
        return self._pictures[-1] if self._pictures else None

    def _follow(self) -> None:
        """Show or keep the pictures since the last turn."""
        if self._film is None or self.render_mode == "rgb_array":
            return
        for picture in self._film.pictures():
            if self._window is not None:
                self._window.show(picture)
            else:
                self._pictures.append(picture)

    def _open_world(self) -> World:
        """Make the world of the trial, one that draws if the render mode needs it."""
        if self.render_mode is None or not isinstance(self._domain, HasFilm):
            return self._domain.world(self._trial)
        self._film = self._domain.film(self._trial)
        return self._film.world

    def _leave_episode(self) -> Rollout | None:
        """Go on to the next episode of the same world; return None where that cannot be or a record would miss it."""
        rollout = self._rollout
        if rollout is None or rollout.over or not self._endless or self._journal is not None:
            return None
        left = isinstance(rollout.world, LeavesEpisodes) and rollout.world.leave_episode()
        return Rollout(rollout.world, self._limits) if left else None

    def _start_anew(self, seed: int | None) -> Rollout:
        """Open the trial again, or another one where no episode may come twice."""
        self._end()
        if self._endless and seed is None:
            self._trial = msgspec.structs.replace(self._trial, seed=int(self.np_random.integers(1 << 31)))
        return self._start()

    @property
    def _limits(self) -> Limits:
        return msgspec.structs.replace(self._trial.limits, reply_seconds=None)

    def _start(self) -> Rollout:
        """Open the trial, recorded as its first repeat that has not begun."""
        limits, world = self._limits, self._open_world()
        if self._journal is None:
            return Rollout(world, limits)
        cell = _next_cell(self._journal, self._agent, self._trial, self._facts)
        recorder = Recorder(cell.id, self._journal.begin(cell.id), self._journal.add, full=self._full)
        recorder.rule = own_rule(self._domain, self._trial)
        try:
            return Rollout(world, limits, recorder)
        except OpenfieldError as error:
            recorder.end(*explain_failure(error), seconds=0.0)
            raise

    def _act(self, action: Any) -> Turn:
        try:
            return self._reply(from_numpy(self._actions, action))
        except (IndexError, KeyError, TypeError, ValueError):
            self._end(fault := AgentProtocol(f"{action!r} is not an action of {self.action_space}."))
            raise fault from None

    def _reply(self, action: Any = None) -> Turn:
        """Reply with an action, and with a belief if one was given or is asked for; a failure ends the trial."""
        rollout = self._rollout
        if rollout is None:
            raise ResetNeeded("Call reset() first.")
        asked = Belief(0.0) if rollout.turn.ask is Ask.BELIEF else None
        belief, self._belief = self._belief or asked, None
        try:
            turn = rollout.reply(Reply(action, belief))
            self._follow()
        except OpenfieldError as error:
            self._end(error)
            raise
        return turn

    def _end(self, error: OpenfieldError | None = None) -> None:
        """Record how the trial ended, if one is under way."""
        if self._rollout is not None:
            ended = (self._rollout.outcome if self._rollout.over else "cancelled", "")
            self._rollout.close(*(ended if error is None else explain_failure(error)))
        self._rollout = None
        self._moved = False

    def _show(self, turn: Turn) -> Any:
        """Return the observation, or the one before if a turn has none."""
        if turn.observation is not None or self._seen is None:
            self._seen = to_numpy(self._observations, turn.observation)
        return self._seen


def env(
    trial: Trial,
    journal: str | Path | None = None,
    agent_name: str = "gym",
    render_mode: str | None = None,
    record: RecordKind | None = None,
) -> DomainEnv:
    """Return a trial as a Gymnasium environment, for a training loop of one's own.

    Args:
        trial: The trial.
        journal: The run file; None records nothing.
        agent_name: The name results are recorded under.
        render_mode: `human`, `rgb_array` or `rgb_array_list` if the domain draws; None draws nothing.
        record: `digests` of pictures and other large arrays, or `full` to keep them; None goes on as the run file was
            begun.
    """
    if not isinstance(trial, Trial):
        raise InvalidInput(f"'trial' is one trial, such as of.trials('gym:CartPole-v1')[-1], not {trial!r:.80}.")
    return DomainEnv(trial.domain, trial, journal, agent_name, render_mode, record)


def register_domain(domain: Domain[Any]) -> str | None:
    """Register a domain with Gymnasium and return its id; None if it does not declare its spaces."""
    use_domain(domain)
    spec = domain.spec(first_trial(domain))
    if spec.actions is None or spec.observations is None:
        return None
    name = f"{NAMESPACE}/{gym_name(domain)}-v0"
    if name not in gymnasium.registry:
        source = domain_source(domain.name) or domain.name
        gymnasium.register(
            name,
            entry_point=f"{__name__}:DomainEnv",
            vector_entry_point=domain.gym_vector,
            kwargs={"domain": source},
        )
    return name


def gym_name(domain: Domain[Any]) -> str:
    """Return the name Gymnasium knows a domain by: its `gym_name`, or its name in camel case."""
    words = re.split(r"[^0-9A-Za-z]+", domain.name)
    return domain.gym_name or "".join(word[:1].upper() + word[1:] for word in words)


def to_gym(space: Space) -> gymnasium.Space[Any]:
    """Convert a space to Gymnasium's; a choice becomes the number of its option."""
    match space:
        case Discrete(n, start):
            return gymnasium.spaces.Discrete(n, start=start)
        case Choice(options):
            return gymnasium.spaces.Discrete(len(options))
        case Box(low=0, high=1, shape=shape, dtype="int8"):
            return gymnasium.spaces.MultiBinary(list(shape))
        case Box(shape=shape, dtype=dtype):
            kind = np.dtype(dtype).type
            lows, highs = space.bounds
            return gymnasium.spaces.Box(lows.reshape(shape).astype(kind), highs.reshape(shape).astype(kind), dtype=kind)
        case Fields(parts):
            return gymnasium.spaces.Dict({name: to_gym(part) for name, part in parts.items()})
        case Tuple(items):
            return gymnasium.spaces.Tuple([to_gym(part) for part in items])
        case Sequence(part):
            return gymnasium.spaces.Sequence(to_gym(part))
        case Text(characters, longest, shortest):
            return gymnasium.spaces.Text(longest, min_length=shortest, charset=characters)


def first_trial(domain: Domain[Any], changes: Mapping[str, Any] | None = None) -> Trial:
    """Return the default trial, with the settings under which the domain declares its spaces, and with changes."""
    make_settings(domain.settings, changes or {})  # refuses other options of `Domain.trials`
    settings = {**domain.gym_settings, **(changes or {}), "unchanged": 0}
    return domain.trials(count=1, novelty="none" if domain.gym_endless else None, **settings)[0]


def choose_trial(domain: Domain[Any], trial: Any, settings: Mapping[str, Any] | None) -> Trial:
    """Return the trial that is given, or else the default one with some settings.

    Raises:
        InvalidInput: Both are given; or it is not a `Trial`, or one of another domain, which would be recorded under a
            false name.
    """
    if trial is None:
        return first_trial(domain, settings)
    if settings:
        raise InvalidInput("A trial has its own settings: give 'trial' or 'settings', not both.")
    if not isinstance(trial, Trial):
        shown = f"a {type(trial).__name__}" if isinstance(trial, list) else repr(trial)
        raise InvalidInput(f"'trial' is one trial, such as of.trials({domain.name!r})[-1], not {shown}.")
    if trial.domain != domain.name:
        raise InvalidInput(f"Trial {trial.id} is one of {trial.domain}; this environment plays {domain.name}.")
    return trial


def find_spaces(domain: Domain[Any], trial: Trial) -> tuple[Space, Space]:
    """Return the spaces of actions and observations; refuse a trial that does not declare them."""
    spec = domain.spec(trial)
    if spec.actions is None or spec.observations is None:
        known = ", ".join(f"{name}={value}" for name, value in domain.gym_settings.items())
        where = f" unless trials are made with {known}" if known else ""
        raise InvalidInput(f"{domain.name} does not declare its spaces{where}, which Gymnasium needs.")
    return spec.actions, spec.observations


def _info(turn: Turn) -> dict[str, Any]:
    shown = {"phase": turn.phase, "feedback": turn.feedback, "red_light": turn.red_light}
    return {name: value for name, value in shown.items() if value is not None}


def _next_cell(journal: Journal, agent: str, trial: Trial, said: Mapping[str, str]) -> Cell:
    """Lease the first repeat of a trial that has not begun.

    Args:
        journal: The run file.
        agent: The name results are recorded under.
        trial: The trial.
        said: What the run file must know beside it.
    """
    source = absolute(domain_source(trial.domain))
    facts = {"openfield": __version__, **said} | ({f"domain {trial.domain}": source} if source != trial.domain else {})
    facts |= {**write_rules(find_domain(trial.domain)), **sign_code([source, *list_trial_code([trial])])}
    for repeat in itertools.count():
        cell = Cell(agent, trial, repeat)
        journal.enter([cell], {agent: None}, facts)
        if journal.lease(cell.id):
            with Run(journal.path) as run:
                (record,) = run.cells(with_episodes=False, only=cell.id)
            if record.attempt == 0:
                break
    return cell


def register_installed() -> None:
    """Register all installed domains; one that cannot be is named in a warning."""
    for domain in installed_domains():
        try:
            register_domain(domain)
        except OpenfieldError as error:
            note = f"The domain '{domain.name}' cannot be used with Gymnasium: {error}"
            warnings.warn(note, PluginWarning, stacklevel=2)


class Window:
    """A window on the screen, for `render_mode="human"`. pygame is imported when the first picture is shown."""

    def __init__(self, title: str, fps: float) -> None:
        """Prepare a window; it opens with its first picture and shows at most `fps` pictures a second."""
        self._title, self._fps = title, fps
        self._screen: Any = None
        self._closed = False

    def show(self, picture: Any) -> None:
        """Show a picture: an array of height, width and three colours. Do nothing once the user closed the window."""
        if self._closed:
            return
        game = _import_pygame()
        if self._screen is None:
            self._open(game, (picture.shape[1], picture.shape[0]))
        surface = game.image.frombuffer(picture.tobytes(), (picture.shape[1], picture.shape[0]), "RGB")
        self._screen.blit(surface, (0, 0))
        game.display.flip()
        self._clock.tick(self._fps)
        if any(event.type == game.QUIT for event in game.event.get()):
            self.close()

    def close(self) -> None:
        """Close the window."""
        self._closed = True
        if self._screen is not None:
            _import_pygame().display.quit()
        self._screen = None

    def _open(self, game: Any, size: tuple[int, int]) -> None:
        try:
            game.display.init()
            self._screen = game.display.set_mode(size)
        except game.error as error:
            raise InvalidInput(f'No window can be opened ({error}). Use render_mode="rgb_array".') from None
        game.display.set_caption(self._title)
        self._clock = game.time.Clock()


def _import_pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # otherwise the import prints a line
    return import_extra("pygame", "window", 'render_mode="human"')
