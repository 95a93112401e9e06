"""CommAI as a domain: its name, settings, novelties, agents, exports and wire.

The registry finds it by name. Everything heavier is imported when a world, a wire or a view is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from openfield.capabilities import Curriculum
from openfield.core import AgentFactory, Reply, Spec, World
from openfield.course import Blend
from openfield.domain import Domain
from openfield.domains.commai.novelty import NOVELTIES, CommaiBlend
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import InvalidInput
from openfield.record import EpisodeEnd
from openfield.registry import check_parameters
from openfield.spaces import Discrete
from openfield.trial import Phase, Trial, file_digest, with_changes

if TYPE_CHECKING:
    from openfield.agents.play_page import PlayPage
    from openfield.agents.turn_writer import TurnWriter
    from openfield.journal.writer import Journal
    from openfield.options import CommandOptions
    from openfield.serving.wire import Dispatcher, Serving, Wire

_AGENTS = "openfield.domains.commai.agents.learner_agent"
TASK = (
    "A teacher sends one {symbol} at a time, with the reward for your last {symbol}; answer each with one {symbol}. "
    "Space (32) is silence. Find out what is asked, when to speak and what earns rewards; tasks change unannounced."
)


class CommaiDomain(Domain[CommaiSettings]):
    """The General AI Challenge, Round 1, and the older sets it grew from."""

    name = "commai"
    version = 3
    title = "A teacher and a learner exchange bytes; tasks build on each other"
    gym_name = "CommAI"
    gym_vector = "openfield.domains.commai.batched.vector_env:CommaiVectorEnv"
    settings = CommaiSettings
    novelties = NOVELTIES
    agents = {
        "echo": f"{_AGENTS}:EchoAgent",
        "silent": f"{_AGENTS}:SilentAgent",
        "random": f"{_AGENTS}:make_random",
        "memorising": f"{_AGENTS}:make_memorising",
        "mapper": f"{_AGENTS}:make_mapper",
        "oracle": "openfield.domains.commai.agents.oracle:OracleAgent",
    }
    oracles = ("oracle",)
    letters: Literal[True] = True
    turnwise = True
    abrupt_settings = ("reward_sign",)
    exports = {
        "results": "openfield.domains.commai.exports:export_results",
        "tasks": "openfield.domains.commai.exports:export_table",
    }
    metrics = ("performance", "gradual", "detection", "borders", "adaptation")
    demo_agents = ("mapper", "echo")
    demo_settings = {
        "tasks": ("micro4",),
        "cyclic": True,
        "success_tolerance": 1.0,
        "failed_task_tolerance": 0.0,
        "onset": "3000-6000",
        "max_steps": 9000,
    }
    demo_novelty = "alphabet:hard+new-task:hard"
    check_settings = {
        "tasks": ("micro6", "micro7.2", "micro14"),
        "scheduler": "sequential",
        "required_consecutive_rewards": 1,
        "success_tolerance": 0.0,
        "failed_task_tolerance": 0.0,
        "onset_instances": 3,
        "max_steps": 6000,
    }
    """Short instances of tasks with words, feedback and separators, so that every novelty shows."""

    def spec(self, trial: Trial) -> Spec:
        """Return the spec of a trial: one byte in and one out, or one bit."""
        bits = self.settings_in(trial, trial.phases[0]).bit_mode
        space, task = Discrete(2 if bits else 256), TASK.format(symbol="bit" if bits else "byte")
        return Spec(domain=self.name, task=task, actions=space, observations=space)

    def phases(self, settings: CommaiSettings, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """Return one phase, or with novelties one before the onset and one from it on, in instances or in steps."""
        if not novelty:
            return (Phase("test"),)
        fixed = settings.onset_instances is not None or settings.onset_steps > 0
        if fixed and settings.onset == "":
            before = 0 if settings.onset_steps else settings.onset_instances or 0
            return (Phase("test", before), Phase("test", 0, novelty))
        return (Phase("test", 0, novelty, settings.max_steps),)

    def trials(self, *args: Any, **options: Any) -> list[Trial]:
        """Make trials that differ in their seeds; the gradual design adds trials of single tasks.

        Tasks, worlds and configurations of users become part of them by the digests of their files.
        """
        from openfield.domains.commai.design import add_scratch, complete_design

        made = super().trials(*args, **complete_design(options))
        if not made:
            return made
        _check(self.settings_in(made[0], made[0].phases[-1]))
        files = _digest_code(made[0])
        if files:
            made = with_changes(made, lambda trial: msgspec.structs.replace(trial, files=files))
        return list(add_scratch(made)) if made[0].settings.get("design") == "gradual" else made

    def list_code(self, trial: Trial) -> list[str]:
        """Return the tasks, worlds, schedulers and Python configurations of users that a trial names."""
        from openfield.domains.commai.original.configuration import list_user_code

        return list_user_code(trial.settings) if _names_code(trial) else []

    def world(self, trial: Trial) -> World:
        """Make the world of a trial."""
        from openfield.domains.commai.world import CommaiWorld

        found = _digest_code(trial) if trial.files else {}
        for name, digest in trial.files.items():
            if (found.get(name) or _digest(name)) != digest:
                raise InvalidInput(f"{name} is not the file this trial was made with.")
        first, last = trial.phases[0], trial.phases[-1]
        settings = self.settings_of(trial)
        changed = self.settings_in(trial, last) if last.novelty else None
        settings = settings if trial.window is None else msgspec.structs.replace(settings, cyclic=True)
        onset = (0, 0) if first.novelty else (first.episodes, first.steps or settings.onset_steps)
        return CommaiWorld(trial, settings, changed, onset, self.course(trial))

    def blend(self, usual: CommaiSettings, changed: CommaiSettings) -> Blend[CommaiSettings]:
        """Return the way to other settings: another alphabet, and another task, come by their shares."""
        return CommaiBlend(usual, changed, self.abrupt_settings)

    def curriculum(self, trial: Trial) -> Curriculum:
        """Return the tasks of a trial in order, and how many steps they have."""
        from openfield.domains.commai.design import describe_curriculum

        return describe_curriculum(trial, self.settings_of(trial))

    def adapt(self, found: Any, parameters: Mapping[str, Any]) -> AgentFactory | None:
        """Return a factory for a learner class of the original's kind, with `next(symbol)` and `reward(r)`."""
        if not inspect.isclass(found) or not callable(getattr(found, "next", None)):
            return None
        from openfield.domains.commai.agents.learner_agent import make_learner

        check_parameters(found, parameters, taken=0)
        return partial(make_learner, found, parameters)

    def import_module(self, name: str) -> ModuleType:
        """Import a module of a user, which may import the packages of the original."""
        from openfield.domains.commai.original.imports import user_folder

        return user_folder().import_module(name)

    def prepare_module(self, module: ModuleType) -> None:
        """Let a module that was made from a file import the packages of the original."""
        from openfield.domains.commai.original.imports import user_folder

        user_folder().prepare(module)

    def options(self, command: str) -> type[CommandOptions] | None:
        """Return the original's options of a command."""
        from openfield.domains.commai.options import OPTIONS

        return OPTIONS.get(command)

    def turn_writer(self, spec: Spec) -> TurnWriter:
        """Return what says turns in words for language models."""
        from openfield.domains.commai.agents.commai_writer import CommaiWriter

        return CommaiWriter(spec)

    def play_page(self, trial: Trial) -> PlayPage:
        """Let a person talk to the teacher in a browser."""
        from openfield.domains.commai.play_page import ConversationPage

        settings = self.settings_of(trial)
        return ConversationPage(settings.bit_mode, settings.skips)

    def wire(self) -> Wire:
        """Make the wire of remote learners: ZeroMQ PAIR."""
        from openfield.domains.commai.wire.server import PairWire

        return PairWire()

    def open_dispatcher(self, journal: Journal, trials: Sequence[Trial], serving: Serving) -> tuple[Wire, Dispatcher]:
        """Serve many learners at once: all on one port, or each on a port of its own."""
        from openfield.domains.commai.wire.server import MAX_LEARNERS, PairWire
        from openfield.serving.dispatch import TrialDispatcher

        ports = serving.options
        wire = PairWire(ports or 1, 1 if ports else MAX_LEARNERS, serving.agent, public=True)
        return wire, TrialDispatcher(journal, self, trials, serving.agent, serving.token)

    def scripted_peer(self, host: str, port: int, replies: Sequence[Reply]) -> Awaitable[None]:
        """Play these replies over the wire, for the conformance kit."""
        from openfield.domains.commai.wire.server import play_pair

        return play_pair(host, port, replies)

    def progress(self, episode: EpisodeEnd) -> str:
        """Return the task of the curriculum, the instance and the streak, as text."""
        detail = episode.detail or {}
        place = f" ({detail['at']} of {detail['of']})" if "at" in detail else ""
        streak = f", streak {detail['streak']}" if "streak" in detail else ""
        return f"{detail.get('task', '')}{place}, instance {detail.get('instance', 0)}{streak}"


def _check(settings: CommaiSettings) -> None:
    """Check a curriculum before anything starts."""
    from openfield.domains.commai.curriculum import open_scheduler
    from openfield.domains.commai.tasks.catalogue import task_ids

    open_scheduler(settings)
    task_ids([settings.intruder] if settings.intruder else ())


def _names_code(trial: Trial) -> bool:
    return bool(trial.settings.get("configuration") or trial.settings.get("module"))


def _digest_code(trial: Trial) -> dict[str, str]:
    """Return the digests of the files of users that a trial needs."""
    from openfield.domains.commai.original.configuration import digest_files

    return digest_files(trial.settings) if _names_code(trial) else {}


def _digest(name: str) -> str:
    try:
        return file_digest(Path(name).read_bytes())
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from None


DOMAIN = CommaiDomain()
"""The domain `commai`, as `openfield.registry.find_domain("commai")` returns it."""
