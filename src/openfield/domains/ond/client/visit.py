"""Play the tests of a server with agents of any kind, for `openfield ond visit` and `openfield run ond --server`.

Agents written for the original client are recognised by their steps; all others reply to turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from openfield.core import AgentFactory, Spec
from openfield.domain import Domain
from openfield.domains.ond.client.configuration import is_configuration, read_agent_configuration, read_description
from openfield.domains.ond.client.original_client import register_stubs
from openfield.domains.ond.client.rest_client import LOCAL, LocalClient, RestClient
from openfield.domains.ond.client.step_player import StepOptions, StepPlayer, has_steps, make_step_agent
from openfield.domains.ond.client.turn_player import TurnPlayer
from openfield.domains.ond.client.workflow import (
    THRESHOLD,
    OndPlayer,
    SessionOptions,
    play_sessions,
    read_threshold,
    write_version,
)
from openfield.domains.ond.testset.test import find_area
from openfield.errors import InvalidInput, UnknownName
from openfield.parameters import AgentText, read_agent, read_value, strip_parameters, with_parameters
from openfield.registry import AgentSource, find_agent, load
from openfield.runner.plan import name_agents
from openfield.settings import setting_rows

T = TypeVar("T")
SESSION_KEYS = ("protocol", "area", "tests", "hints", "resume", "save", "baseline", "evaluate", "compat")
STEP_KEYS = tuple(field.name for field in msgspec.structs.fields(StepOptions) if field.name != "baseline")


def play_at_server(
    domain: Domain[Any], server: str, token: str | None, changes: Mapping[str, Any]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Play a server's tests with each agent, and return its scores by agent and test.

    `changes` are keys of an experiment: `agents`, `trials`, `seed`, `redlight`, `output` and `settings`. The latter are
    `data` (the data directory), `protocol`, `area`, `tests` and `hints` (joined by +), `resume` (a session,
    or `AGENT:SESSION` joined by +), `save` (a folder for scores), `baseline` (an agent), `evaluate`, and the fields of
    `StepOptions`: `skip` (steps joined by +), `keep` (`STEP.ATTRIBUTE` joined by +) and so on. Others are parameters of
    all agents of the original client, typed as in brackets; those in an agent's own brackets win. For the server
    `here`, `data` is any source of samples that `run` knows, and further settings of the domain are those of the tests
    that are built from it.
    """
    register_stubs()
    settings = dict(changes.get("settings") or {})
    agents = _name_hosted(name_agents(changes.get("agents") or ["random"]))
    steps = _read_step_options({key: settings.pop(key) for key in STEP_KEYS if key in settings})
    chosen = {key: settings.pop(key) for key in SESSION_KEYS if key in settings}
    options = _read_session_options(chosen, changes, agents, steps)
    seed = int(changes.get("seed") or 0)
    names = [row.name for row in setting_rows(domain.settings) if server == LOCAL and row.name not in ("data", "test")]
    built = {key: settings.pop(key) for key in names if key in settings}
    _refuse_unknown(settings, agents, names)
    with _open_client(domain, server, token, changes, settings, options, built) as client:
        unknown_last = find_area(options.area).unknown == "last"
        players = []
        for name, source in agents.items():
            own = msgspec.structs.replace(steps, baseline=name == options.baseline)
            players.append(make_player(domain, name, source, settings, seed, own, unknown_last))
        return play_sessions(client, players, options)


def _refuse_unknown(settings: Mapping[str, Any], agents: Mapping[str, AgentSource], built: list[str]) -> None:
    """Refuse settings that no agent takes: only agents of the original client have parameters among the settings."""
    others = [key for key in settings if key not in ("data", THRESHOLD)]
    if others and not any(_has_parameters(source) for source in agents.values()):
        known = dict.fromkeys(["data", THRESHOLD, *SESSION_KEYS, *STEP_KEYS, *built])
        raise UnknownName("setting", others[0], known, label="Known")


def _has_parameters(source: AgentSource) -> bool:
    place = _split_hosted(source)[0]
    if isinstance(place, str) and (":" not in place or place.startswith(("process:", "wire:"))):
        return False
    return has_steps(load(place) if isinstance(place, str) else place)


def make_player(
    domain: Domain[Any],
    name: str,
    source: AgentSource,
    settings: Mapping[str, Any],
    seed: int,
    steps: StepOptions,
    unknown_last: bool = False,
) -> OndPlayer:
    """Make the player of an agent: a `StepPlayer` if it has the protocol's steps, else a `TurnPlayer`."""
    config = {key: read_value(value) if isinstance(value, str) else value for key, value in settings.items()}
    root = str(settings.get("data", ""))
    config.pop("data", None)
    place, own = _split_hosted(source)
    named = isinstance(place, str) and ":" in place and not place.startswith(("process:", "wire:"))
    found = load(str(place)) if named else place
    if not isinstance(found, str) and has_steps(found):
        config |= own
        version = write_version(name, own)
        return StepPlayer(name, make_step_agent(found, config), root, config, steps, version)
    if isinstance(source, str) and source.startswith("wire:"):
        raise InvalidInput("A wire: program talks to a server by itself; start it with the server's address.")
    threshold = read_threshold(own.pop(THRESHOLD, config.get(THRESHOLD, 0.5)))
    factory: AgentFactory = find_agent(with_parameters(place, **own) if own else place, domain)
    spec = Spec(domain=domain.name, task="Play the tests of a server.")
    player = TurnPlayer(name, lambda: factory(spec, seed), root, threshold, not steps.baseline, unknown_last)
    player.version = write_version(name, own)
    return player


def _name_hosted(agents: Mapping[str, AgentSource]) -> dict[str, AgentSource]:
    """Return the agents by short names, which are part of names of files; those of configurations by theirs.

    Raises:
        InvalidInput: Two agents have the same name.
    """
    named: dict[str, AgentSource] = {}
    for given, agent in agents.items():
        source = agent.text if isinstance(agent, AgentText) else agent
        if is_configuration(source):
            found: dict[str, AgentSource] = {**read_agent_configuration(str(source))}
            if given != source and len(found) == 1:  # the user named it
                found = dict(zip([given], found.values(), strict=True))
        else:
            found = {strip_parameters(given).rsplit(":", 1)[-1]: source}
        for name, one in found.items():
            if named.setdefault(name, one) is not one:
                raise InvalidInput(f"Two agents are called '{name}'. Name one of them: --agent other=AGENT")
    return named


def _split_hosted(source: AgentSource) -> tuple[str | Callable[..., Any], dict[str, Any]]:
    """Return an agent without its parameters, and these; files may hold them as those of the original client do."""
    if callable(source):
        return (source.func, dict(source.keywords)) if isinstance(source, partial) else (source, {})
    name = strip_parameters(str(source)).rpartition(":")[2]
    agent = read_agent(str(source), partial(read_description, name))
    if agent.detector is not None:
        raise InvalidInput(
            f"'{source}': a visit has no training that '{agent.detector}' could be fitted to. Leave it out."
        )
    return agent.place, dict(agent.parameters)


def _open_client(
    domain: Domain[Any],
    server: str,
    token: str | None,
    changes: Mapping[str, Any],
    settings: dict[str, Any],
    options: SessionOptions,
    built: Mapping[str, Any],
) -> RestClient:
    """Open the client of a server, or of one in this process, whose data directory the agents then use too."""
    if server != LOCAL:
        if changes.get("output"):
            raise InvalidInput("The server records its own sessions. Give -o only with the server `here`.")
        return RestClient(server, token)
    run, seed = Path(changes.get("output") or "runs/ond.sqlite"), int(changes.get("seed") or 0)
    built = {**built, "protocol": options.protocol, "area": options.area}
    client = LocalClient(domain, run, str(settings.get("data", "")), int(changes.get("trials") or 5), seed, built)
    settings["data"] = client.root
    return client


def _read_session_options(
    chosen: dict[str, Any], changes: Mapping[str, Any], agents: Mapping[str, Any], steps: StepOptions
) -> SessionOptions:
    if "tests" in chosen:
        chosen["tests"] = str(chosen["tests"]).split("+")
    if "resume" in chosen:
        pairs = [str(part).rpartition(":") for part in str(chosen["resume"]).split("+")]
        chosen["resume"] = {agent or next(iter(agents)): session for agent, _, session in pairs}
    for name in (*chosen.get("resume", ()), *([chosen["baseline"]] if "baseline" in chosen else ())):
        if name not in agents:
            raise UnknownName("agent", name, agents, label="Given")
    hints = str(chosen.pop("hints", "")).split("+")
    scored = not steps.extract_only and "EvaluateAlgorithms" not in steps.skip
    asked: dict[str, Any] = {"evaluate": scored, "round_scores": "EvaluateRoundwise" not in steps.skip}
    posts = {"WorldDetection", "NoveltyClassification"} - set(steps.skip)
    asked |= {"compat": steps.extract_only or not posts}  # rounds without results
    asked |= {
        "max_tests": changes.get("trials"),
        "hints": [*(["red_light"] if changes.get("redlight") else []), *filter(None, hints)],
    }
    return _convert(asked | chosen, SessionOptions)


def _read_step_options(typed: dict[str, Any]) -> StepOptions:
    if "skip" in typed:
        typed["skip"] = str(typed["skip"]).split("+")
    if "keep" in typed:
        pairs = [part.partition(".") for part in str(typed["keep"]).split("+")]
        typed["keep"] = {step: [name for other, _, name in pairs if other == step] for step, _, _ in pairs}
    return _convert(typed, StepOptions)


def _convert(typed: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(typed, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{error}.") from None
