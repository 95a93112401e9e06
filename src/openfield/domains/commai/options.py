"""The command line of the original, as flags of `openfield run`, `play` and `serve`.

Flags leave notes; `prepare` puts them together, because which learner plays depends on several of them.
"""

from __future__ import annotations

import math
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from openfield.errors import InvalidInput, UnknownName
from openfield.options import Flag, Launch
from openfield.settings import changed_settings

LEARNERS = {
    "BaseLearner": "echo",
    "SampleRepeatingLearner": "echo",
    "SampleSilentLearner": "silent",
    "SampleMemorizingLearner": "memorising",
}
HUMANS = {"HumanLearner": "line", "HaltOnDotHumanLearner": "dot", "ImmediateHumanLearner": "immediate"}
VIEWS = ("BaseView", "ConsoleView")
PORT = 5556
LOOPBACK = "127.0.0.1"
LOCAL = ("run", "play")
WIRED = ("run", "serve")
DAY = 24 * 60 * 60.0


def read_configuration(launch: Launch, path: Path) -> Launch:
    """A configuration file becomes settings, checked at once; one trial of it is played, without a novelty."""
    from openfield.domains.commai.tasks.configuration import load_configuration

    _, settings = load_configuration(path)
    one = replace(launch, trials=launch.trials or 1, novelty="none").note(configured=True)
    if path.suffix == ".toml":
        return one.set(**changed_settings(settings))
    if path.suffix == ".py":
        return one.set(module=str(path))
    return one.set(configuration=msgspec.json.decode(path.read_bytes()))


def choose_view(launch: Launch, name: str) -> Launch:
    """`BaseView` shows progress, `ConsoleView` the conversation."""
    if name.rpartition(".")[2] not in VIEWS:
        raise UnknownName("view", name, VIEWS, label="Known")
    return launch.note(view=name.rpartition(".")[2])


def write_summary(launch: Launch, path: Path) -> Launch:
    """Writes the original's summary when all is done."""
    from openfield.domains.commai.exports import write_results

    _check_target(path)
    return replace(launch, finish=(*launch.finish, lambda result: write_results(result, path)))


def write_tasks(launch: Launch, path: Path) -> Launch:
    """Writes what each task took when all is done."""
    from openfield.domains.commai.exports import write_table

    _check_target(path)
    return replace(launch, finish=(*launch.finish, lambda result: write_table(result, path)))


def evaluate(launch: Launch, value: Any) -> Launch:
    """The challenge's evaluation: the whole curriculum once, a million steps and a day at most."""
    launch = launch.limit(**{"trial_seconds": DAY, **(launch.limits or {})})
    whole = launch.set(**{"max_steps": 1_000_000, **(launch.settings or {})})
    return replace(whole, novelty="none", trials=launch.trials or 1)


def command(text: str) -> str:
    """What starts a learner."""
    if not text.strip():
        raise ValueError
    return text


def seconds(text: str) -> float:
    """A time to wait."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


def port(text: str) -> int:
    """The number of a port; 0 takes a free one, which a learner that is started is told."""
    value = int(text)
    if not 0 <= value < 1 << 16:
        raise ValueError
    return value


FLAGS = (
    Flag(("CONFIG",), "A configuration: the original's .json or .py, or settings in .toml.", read_configuration, Path),
    Flag(("--scramble",), "Replace every word by a made-up one.", lambda it, _: it.set(scramble="readable")),
    Flag(("-w", "--show-world"), "Show the map of the grid world.", lambda it, _: it.set(show_world=True)),
    Flag(("-d", "--time-delay"), "Seconds between steps.", lambda it, value: it.note(delay=value), seconds, LOCAL),
    Flag(("-l", "--learner"), "A learner's class.", lambda it, value: it.note(learner=value), str, LOCAL),
    Flag(("-v", "--view"), "BaseView or ConsoleView.", choose_view, str, LOCAL),
    Flag(("--learner-cmd",), "Starts a remote learner.", lambda it, value: it.note(command=value), command, ("run",)),
    Flag(("--learner-port",), "Where to listen [5556].", lambda it, value: it.note(port=value), port, WIRED),
    Flag(("--learner-address",), "Where to listen [127.0.0.1, this machine only]; * is everywhere.",
         lambda it, value: it.note(address=value), str, WIRED),
    Flag(
        ("--max-reward-per-task",), "A task pays no more.", lambda it, value: it.set(max_reward_per_task=value), int
    ),
    Flag(("--curses",), "Use the whole screen.", lambda it, _: it.note(screen=True), None, LOCAL),
    Flag(("--bitmode", "--bit-mode"), "A step carries a bit.", lambda it, _: it.set(bit_mode=True)),
    Flag(("--mode",), "Ask a person at a pause (line), a dot, or each step (immediate).",
         lambda it, value: it.note(mode=value), str, LOCAL),
    Flag(("--strict",), "A streak must cover all keys, mini tasks take 20.", lambda it, _: it.set(strict=True)),
    Flag(("--evaluate",), "As the challenge did: a million steps, a day.", evaluate, None, WIRED),
    Flag(("--step-budget",), "Steps per trial.", lambda it, value: it.set(max_steps=value), int),
    Flag(("--time-budget",), "Seconds per trial.", lambda it, value: it.limit(trial_seconds=value), float),
    Flag(("--table",), "Write what each task took, as JSON.", write_tasks, Path),
    Flag(("--summary",), "Write the original's results.out.", write_summary, Path),
)  # fmt: skip


def prepare(launch: Launch, verb: str) -> Launch:
    """Who plays, and how a person sees it."""
    notes = launch.notes or {}
    if verb == "serve":
        return replace(launch, host=notes.get("address"), port=notes.get("port"))
    if notes.get("screen") and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("--curses needs a terminal; leave it out where standard input or output is none.")
    learner = notes.get("learner", "")
    name = learner.rpartition(".")[2]
    if verb == "play" and learner and name not in HUMANS:
        raise InvalidInput(f"A person plays here, not {learner}. For a learner: openfield run commai -l {learner}")
    if verb == "play" or name in HUMANS or _wants_human(notes):
        return _with_human(launch, notes, HUMANS.get(name, "line"))
    if notes.keys() & {"command", "port", "address"} or "RemoteLearner" in name:
        return _with_remote(launch, notes)
    if not learner:
        return launch
    return _with_view(replace(launch, agents={name: LEARNERS.get(name) or _dotted(learner)}), notes)


def _wants_human(notes: dict[str, Any]) -> bool:
    """The original's default learner is a person, if a configuration is all there is."""
    return "configured" in notes and not notes.keys() & {"learner", "command", "port", "address"}


def _with_human(launch: Launch, notes: dict[str, Any], mode: str) -> Launch:
    from openfield.domains.commai.agents.human import make_human

    wanted = notes.get("mode", mode)
    if wanted not in HUMANS.values():
        raise UnknownName("mode", wanted, HUMANS.values(), label="Known")
    human = make_human(wanted, notes.get("screen", False), notes.get("delay", 0.0))
    changed = replace(launch, agents={"human": human}, view=human, workers=0)
    return changed.set(skips=True).limit(reply_seconds=None)


def _with_view(launch: Launch, notes: dict[str, Any]) -> Launch:
    """A learner that is watched plays in this process; a delay without a view is one, too."""
    if notes.get("view") != "ConsoleView" and not notes.keys() & {"delay", "screen"}:
        return launch
    from openfield.domains.commai.agents.watched_learner import make_watched

    (name, source), = (launch.agents or {}).items()  # fmt: skip
    shown = notes.get("view") == "ConsoleView" or notes.get("screen", False)
    agent = make_watched(source, shown, notes.get("screen", False), notes.get("delay", 0.0))
    return replace(launch, agents={name: agent}, workers=0)


def _with_remote(launch: Launch, notes: dict[str, Any]) -> Launch:
    """A remote learner as the original starts it, its command with the port behind it; or one that somebody starts."""
    address, number, program = notes.get("address", ""), notes.get("port", PORT), notes.get("command", "")
    if not number and not program:
        raise InvalidInput("--learner-port 0 takes any free port, which only a learner of --learner-cmd is told.")
    _check_place(address, number)
    source = f"wire:@{address}:{number}" + (f" {program} {{port}}" if program else "")
    waits = f"Waiting for a learner on {address or LOOPBACK}:{number}. Ctrl-C stops."
    return replace(launch, agents={"remote": source}, workers=0, notice="" if program else waits)


def _check_target(path: Path) -> None:
    """Sees that a file can be written, before anything is played for it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInput(f"{path} cannot be written: it is a folder, or its permissions forbid it.")


def _check_place(address: str, number: int) -> None:
    """Sees that one can listen there, before anything is written."""
    try:
        socket.create_server(("" if address == "*" else address or LOOPBACK, number)).close()
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen on {address or LOOPBACK}:{number}: {error.strerror}. "
            "Choose another place: --learner-address, --learner-port."
        ) from None


def _dotted(path: str) -> str:
    """`package.module.Class` as `package.module:Class`."""
    if ":" in path:
        return path
    module, _, name = path.rpartition(".")
    if not module:
        raise InvalidInput(f"--learner takes a dotted path like my_module.MyLearner, not '{path}'.")
    return f"{module}:{name}"
