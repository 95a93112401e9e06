"""The command line of the original, as options of `openfield run`, `play` and `serve`.

Which learner plays depends on several options together: `CommaiRunOptions.prepare` finds out.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from openfield.errors import InvalidInput, UnknownName
from openfield.options import MORE, CommandChanges, Port, Seconds, Whole, changed_fields
from openfield.settings import changed_settings

if TYPE_CHECKING:
    from openfield.result import Result

Mode = Literal["line", "dot", "immediate"]
LEARNERS = {
    "BaseLearner": "base",
    "SampleRepeatingLearner": "sample_learners",
    "SampleSilentLearner": "sample_learners",
    "SampleMemorizingLearner": "sample_learners",
}
"""The module of each learner of the original."""
HUMANS: dict[str, Mode] = {
    "HumanLearner": "line",
    "HaltOnDotHumanLearner": "dot",
    "ImmediateHumanLearner": "immediate",
    "ManualHumanLearner": "immediate",
}
VIEWS = ("BaseView", "ConsoleView")
PORT = 5556
LOOPBACK = "127.0.0.1"
DAY = 24 * 60 * 60.0
SETTINGS = ("show_world", "bit_mode", "strict", "max_reward_per_task", "max_steps", "design")
"""The options that are settings of the domain."""
RARE = Parameter(group=MORE)
FILE = Parameter(group=MORE, metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class CommaiOptions:
    """Options of every command."""

    config: Annotated[Path | None, Parameter(name="CONFIG")] = field(default=None, kw_only=False)
    """A configuration: the original's .json or .py, or settings in .toml."""
    bit_mode: Annotated[bool, Parameter(name=["--bitmode", "--bit-mode"])] = False
    """Send one bit in each step, not one byte."""
    scramble: bool = False
    """Replace every word by a made-up one."""
    strict: Annotated[bool, RARE] = False
    """Let a streak cover all keys, and mini tasks take 20."""
    show_world: Annotated[bool, Parameter(name=["--show-world", "-w"], group=MORE)] = False
    """Show the map of the grid world."""
    max_reward_per_task: Annotated[Whole | None, RARE] = None
    """The most reward that one task pays."""
    max_steps: Annotated[Whole | None, Parameter(name="--step-budget", group=MORE)] = None
    """Steps per trial."""
    time_budget: Annotated[float | None, Parameter(group=MORE, metavar="SECONDS")] = None
    """Seconds per trial."""
    table: Annotated[Path | None, FILE] = None
    """Write what each task took to this file, as JSON."""
    summary: Annotated[Path | None, FILE] = None
    """Write the original's results.out to this file."""

    def prepare(self) -> CommandChanges:
        """Return the trials to play, and the files to write in the end."""
        return CommandChanges(experiment=self.change_experiment(), finish=_list_writers(self))

    def change_experiment(self, evaluates: bool = False) -> dict[str, Any]:
        """Return the settings, limits and trials that the options ask for; they win over a configuration."""
        settings: dict[str, Any] = {"max_steps": 1_000_000} if evaluates else {}
        limits: dict[str, Any] = {"trial_seconds": DAY} if evaluates else {}
        if self.config is not None:
            settings |= read_configuration(self.config)
        settings |= {name: value for name, value in changed_fields(self).items() if name in SETTINGS}
        settings |= {"scramble": "readable"} if self.scramble else {}
        limits |= {} if self.time_budget is None else {"trial_seconds": self.time_budget}
        whole = {"novelty": "none", "trials": 1} if evaluates or self.config is not None else {}
        return {**whole, **({"settings": settings} if settings else {}), **({"limits": limits} if limits else {})}


@dataclass(frozen=True, kw_only=True)
class CommaiPlayOptions(CommaiOptions):
    """Options of commands that play in this process.

    Example:
        openfield play commai tasks.json --mode dot
    """

    learner: Annotated[str, Parameter(name=["--learner", "-l"], metavar="CLASS")] = ""
    """The class of a learner: module.Class."""
    time_delay: Annotated[Seconds | None, Parameter(name=["--time-delay", "-d"])] = None
    """Seconds between two steps."""
    view: Annotated[str, Parameter(name=["--view", "-v"], metavar="VIEW")] = ""
    """BaseView shows progress, ConsoleView the conversation."""
    mode: Annotated[Mode | None, Parameter(metavar="MODE", group=MORE)] = None
    """When a person is asked: at a pause, after a dot, or at each step."""
    curses: Annotated[bool, RARE] = False
    """Use the whole screen."""

    def prepare(self) -> CommandChanges:
        """Return the changes with the person who plays."""
        self.check_view()
        name = _original_name(self.learner)
        if self.learner and name not in HUMANS:
            other = f"openfield run commai -l {self.learner}"
            raise InvalidInput(f"A person plays here, not {self.learner}. For a learner: {other}")
        changes = _with_human(super().prepare(), self, HUMANS.get(name, "line"))
        typed = self.learner or self.view or self.mode or self.curses or self.time_delay is not None
        return replace(changes, terminal=bool(typed))

    def check_view(self) -> None:
        """Refuse a screen that is not there, and a view that does not exist."""
        if self.curses and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise InvalidInput("--curses needs a terminal. Leave it out if standard input or output is a file or pipe.")
        if self.view and self.view.rpartition(".")[2] not in VIEWS:
            raise UnknownName("view", self.view, VIEWS, label="Known")


@dataclass(frozen=True, kw_only=True)
class CommaiRemoteOptions(CommaiOptions):
    """Options of commands that remote learners connect to.

    Example:
        openfield run commai tasks.json --learner-port 5556
    """

    learner_port: Port | None = None
    """The port to listen on [5556]."""
    learner_address: Annotated[str, Parameter(metavar="ADDRESS", group=MORE)] = ""
    """The address to listen on [127.0.0.1, this machine only]; * is everywhere."""
    evaluate: bool = False
    """Play as the challenge did: a million steps, one day at most."""
    design: Annotated[Literal["gradual"] | None, Parameter(metavar="DESIGN")] = None
    """`gradual` plays the curriculum, and with the same seed each of its tasks alone."""

    def change_experiment(self, evaluates: bool = False) -> dict[str, Any]:
        """Return the settings, limits and trials that the options ask for."""
        return super().change_experiment(self.evaluate)

    def prepare(self) -> CommandChanges:
        """Return the changes with the place to listen on."""
        return replace(super().prepare(), host=self.learner_address or None, port=self.learner_port)


@dataclass(frozen=True, kw_only=True)
class CommaiServeOptions(CommaiRemoteOptions):
    """Options of `serve`.

    Example:
        openfield serve commai tasks.json --learners 3
    """

    learners: Annotated[int | None, Parameter(metavar="NUMBER", validator=Number(gte=1, lte=256))] = None
    """How many learners get a port of their own, from the first port upwards [all share one port]."""

    def prepare(self) -> CommandChanges:
        """Return the changes with the ports that learners get."""
        return replace(super().prepare(), serving=self.learners)


@dataclass(frozen=True, kw_only=True)
class CommaiRunOptions(CommaiPlayOptions, CommaiRemoteOptions):
    """Options of `run`.

    Example:
        openfield run commai tasks.json -l my_module.MyLearner -d 0.1
    """

    learner_cmd: Annotated[str, Parameter(metavar="COMMAND")] = ""
    """The command that starts a remote learner."""

    def prepare(self) -> CommandChanges:
        """Return the changes with who plays: a person, a remote learner, a learner here, or the usual agents."""
        self.check_view()
        changes, name = CommaiOptions.prepare(self), _original_name(self.learner)
        remote = bool(self.learner_cmd or self.learner_address) or self.learner_port is not None
        if self.learner or remote:
            words = {
                "--learner": self.learner,
                "--learner-cmd": self.learner_cmd,
                "--learner-address": self.learner_address,
            }
            changes = replace(changes, named_by=next((name for name in words if words[name]), "--learner-port"))
        if name in HUMANS or (self.config is not None and not self.learner and not remote):
            return _with_human(changes, self, HUMANS.get(name, "line"))  # the original's default learner is a person
        if remote or "RemoteLearner" in name:
            return _with_remote(changes, self)
        if not self.learner:
            return changes
        source = _dotted(self.learner)
        return _with_view(replace(changes, agents={source.rpartition(":")[2]: source}), self)


OPTIONS = {"run": CommaiRunOptions, "play": CommaiPlayOptions, "serve": CommaiServeOptions}


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the settings of a configuration file, which is checked at once."""
    from openfield.domains.commai.curriculum import load_configuration

    _, settings = load_configuration(path)
    if path.suffix == ".toml":
        return changed_settings(settings)
    if path.suffix == ".py":
        return {"module": str(path)}
    return {"configuration": msgspec.json.decode(path.read_bytes())}


def _list_writers(options: CommaiOptions) -> list[Callable[[Result], None]]:
    """Return what writes files when all is done; a file that cannot be written is refused now."""
    from openfield.domains.commai.exports import export_results, export_table

    def write(path: Path, export: Callable[[Path, Path, str | None], str], result: Result) -> None:
        export(result.paths[0], path, None)

    wanted = [
        (path, export) for path, export in ((options.table, export_table), (options.summary, export_results)) if path
    ]
    for path, _ in wanted:
        _check_target(path)
    return [partial(write, path, export) for path, export in wanted]


def _with_human(changes: CommandChanges, options: CommaiPlayOptions, mode: Mode) -> CommandChanges:
    """Return the changes with a person as the agent, who may take as long as they like."""
    from openfield.domains.commai.agents.human import make_human

    human = make_human(options.mode or mode, options.curses, options.time_delay or 0.0)
    experiment = changes.experiment
    unhurried = {
        "workers": 0,
        "settings": {**experiment.get("settings", {}), "skips": True},
        "limits": {**experiment.get("limits", {}), "reply_seconds": None},
    }
    return replace(changes, agents={"human": human}, experiment={**experiment, **unhurried}, others=experiment)


def _with_view(changes: CommandChanges, options: CommaiPlayOptions) -> CommandChanges:
    """Return the changes with a learner that is watched, or slowed down, in this process if options ask for it."""
    console = options.view.endswith("ConsoleView")
    if not console and not options.curses and options.time_delay is None:
        return changes
    from openfield.domains.commai.agents.human import make_watched

    (name, source), = changes.agents.items()  # fmt: skip
    agent = make_watched(source, console or options.curses, options.curses, options.time_delay or 0.0)
    here = {**changes.experiment, "workers": 0}
    return replace(changes, agents={name: agent}, experiment=here, others=changes.experiment)


def _with_remote(changes: CommandChanges, options: CommaiRunOptions) -> CommandChanges:
    """Return the changes with a remote learner, started with the port as its last word if a command is given."""
    address, program = options.learner_address, options.learner_cmd
    number = PORT if options.learner_port is None else options.learner_port
    if program and not program.strip():
        raise InvalidInput("--learner-cmd needs a command that starts a learner.")
    if not number and not program:
        raise InvalidInput("--learner-port 0 takes any free port. Only a learner of --learner-cmd learns which.")
    _check_place(address, number)
    source = f"wire:@{address}:{number}" + (f" {program} {{port}}" if program else "")
    waits = f"Waiting for a learner on {address or LOOPBACK}:{number}. Ctrl-C stops."
    here = {**changes.experiment, "workers": 0}
    notice = "" if program else waits
    return replace(changes, agents={"remote": source}, experiment=here, others=changes.experiment, notice=notice)


def _check_target(path: Path) -> None:
    """Check that a file can be written, before anything is played for it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInput(f"{path} cannot be written: it is a folder, or its permissions forbid it.")


def _check_place(address: str, number: int) -> None:
    """Check that one can listen there, before anything is written."""
    try:
        socket.create_server(("" if address == "*" else address or LOOPBACK, number)).close()
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen on {address or LOOPBACK}:{number}: {error.strerror}. "
            "Choose another place: --learner-address, --learner-port."
        ) from None


def _original_name(path: str) -> str:
    """Return the class of a learner if it is the original's: by its module, or alone. A user's class has other ones."""
    module, _, name = path.replace(":", ".").rpartition(".")
    return name if module in ("", "learners.base", "learners.sample_learners", "learners.human_learner") else ""


def _dotted(path: str) -> str:
    """Return `package.module.Class` as `package.module:Class`."""
    if ":" in path:
        return path
    module, _, name = path.rpartition(".")
    if not module and name in LEARNERS:
        module = f"learners.{LEARNERS[name]}"
    if not module:
        raise InvalidInput(f"--learner takes a dotted path like my_module.MyLearner, not '{path}'.")
    return f"{module}:{name}"
