"""Agents on a visit: finds out what kind each is, and plays a server's tests with it.

`openfield run ond --server URL` ends here; `visit.py` has the workflow, `host.py` the agents of the original client.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from openfield.core import AgentFactory, Spec
from openfield.domain import Domain
from openfield.domains.ond.areas import find_area
from openfield.domains.ond.client.local_client import HERE, HereClient
from openfield.domains.ond.client.rest_client import Client
from openfield.domains.ond.client.stages import Options
from openfield.domains.ond.client.standins import register_standins
from openfield.domains.ond.client.step_player import StepPlayer
from openfield.domains.ond.client.steps import is_hostable, make_hosted
from openfield.domains.ond.client.turn_player import TurnPlayer
from openfield.domains.ond.client.workflow import Player, Visit, play_sessions
from openfield.errors import InvalidInput, UnknownName
from openfield.registry import AgentSource, find_agent, load
from openfield.runner.plan import name_agents

T = TypeVar("T")
VISIT_KEYS = ("protocol", "area", "tests", "resume", "save", "baseline", "evaluate")
HOST_KEYS = tuple(field.name for field in msgspec.structs.fields(Options) if field.name != "baseline")


def visit_server(domain: Domain[Any], options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Plays a server's tests with each agent; returns its numbers by agent and test.

    Settings: `data` (where samples lie), `protocol`, `area`, `tests` (joined by +), `resume` (a session, or
    `AGENT:SESSION` joined by +), `save` (a folder for scores), `baseline` (the agent that is the others' reaction
    baseline), `evaluate`, and those of `stages.Options`: `skip` (steps joined by +), `features`, `keep`
    (`STEP.ATTRIBUTE` joined by +) and so on; all others go to the agents.
    """
    register_standins()
    settings = dict(changes.get("settings") or {})
    agents = {_plain(name): source for name, source in name_agents(changes.get("agents") or ["random"]).items()}
    host = _make_options({key: settings.pop(key) for key in HOST_KEYS if key in settings})
    visit = _make_visit({key: settings.pop(key) for key in VISIT_KEYS if key in settings}, changes, agents, host)
    seed = int(changes.get("seed") or 0)
    with _open_client(domain, options, changes, settings) as client:
        last = find_area(visit.area).unknown == "last"
        players = [
            make_player(domain, name, source, settings, seed, _options_for(host, name, visit), last)
            for name, source in agents.items()
        ]
        return play_sessions(client, players, visit)


def make_player(
    domain: Domain[Any],
    name: str,
    source: AgentSource,
    settings: Mapping[str, Any],
    seed: int,
    host: Options,
    unknown_last: bool = False,
) -> Player:
    """A player for an agent: by its steps if it has any, else by turns."""
    config = dict(settings)
    root = str(config.pop("data", ""))
    named = isinstance(source, str) and ":" in source and not source.startswith(("process:", "wire:"))
    found = load(str(source)) if named else source
    if not isinstance(found, str) and is_hostable(found):
        return StepPlayer(name, make_hosted(found, config), root, config, host)
    if isinstance(source, str) and source.startswith("wire:"):
        raise InvalidInput("A wire: program talks to a server by itself; start it with the server's address.")
    factory: AgentFactory = find_agent(source, domain)
    spec = Spec(domain=domain.name, task="Play the tests of a server.")
    return TurnPlayer(name, lambda: factory(spec, seed), root, detects=not host.baseline, unknown_last=unknown_last)


def _options_for(host: Options, name: str, visit: Visit) -> Options:
    return msgspec.structs.replace(host, baseline=name == visit.baseline)


def _open_client(
    domain: Domain[Any], options: Mapping[str, Any], changes: Mapping[str, Any], settings: dict[str, Any]
) -> Client:
    """Who answers: a server, or an office in this process, whose data directory is then that of the agents too."""
    if options["server"] != HERE:
        if "output" in changes:
            raise InvalidInput("The server keeps the record of what is played there; -o is for --server here.")
        return Client(options["server"], options.get("token"))
    run, seed = Path(changes.get("output") or "runs/ond.sqlite"), int(changes.get("seed") or 0)
    client = HereClient(domain, run, str(settings.get("data", "")), int(changes.get("trials") or 5), seed)
    settings["data"] = client.root
    return client


def _make_visit(chosen: dict[str, Any], changes: Mapping[str, Any], agents: Mapping[str, Any], host: Options) -> Visit:
    """What is to be played, from what was typed."""
    if "tests" in chosen:
        chosen["tests"] = str(chosen["tests"]).split("+")
    if "resume" in chosen:
        pairs = [str(part).rpartition(":") for part in str(chosen["resume"]).split("+")]
        chosen["resume"] = {agent or next(iter(agents)): session for agent, _, session in pairs}
    for name in (*chosen.get("resume", ()), *([chosen["baseline"]] if "baseline" in chosen else ())):
        if name not in agents:
            raise UnknownName("agent", name, agents, label="Given")
    scored = not host.extract_only and "EvaluateAlgorithms" not in host.skip
    asked = {"evaluate": scored, "rounds": "EvaluateRoundwise" not in host.skip, "most": changes.get("trials")}
    return _convert(asked | chosen | {"hints": ["red_light"] if changes.get("redlight") else []}, Visit)


def _make_options(typed: dict[str, Any]) -> Options:
    """The host's options, from what was typed."""
    if "skip" in typed:
        typed["skip"] = str(typed["skip"]).split("+")
    if "keep" in typed:
        pairs = [part.partition(".") for part in str(typed["keep"]).split("+")]
        typed["keep"] = {step: [name for other, _, name in pairs if other == step] for step, _, _ in pairs}
    return _convert(typed, Options)


def _convert(typed: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(typed, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{error}.") from None


def _plain(name: str) -> str:
    return name.rsplit(":", 1)[-1]
