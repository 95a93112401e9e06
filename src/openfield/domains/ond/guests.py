"""Agents on a visit: finds out what kind each is, and plays a server's tests with it.

`openfield run ond --server URL` ends here; `visit.py` has the workflow, `host.py` the agents of the original client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openfield.core import AgentFactory, Spec
from openfield.domain import Domain
from openfield.domains.ond.client import Client
from openfield.domains.ond.host import StepPlayer, is_hostable, make_hosted
from openfield.domains.ond.standins import register_standins
from openfield.domains.ond.visit import Player, TurnPlayer, Visit, play_session
from openfield.errors import InvalidInput
from openfield.plan import name_agents
from openfield.registry import AgentSource, find_agent, load

VISIT_KEYS = ("protocol", "area", "tests", "resume", "save")
HOST_KEYS = ("skip", "features", "feedback_type")


def visit_server(domain: Domain[Any], options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Plays a server's tests with each agent; returns its numbers by agent and test.

    Settings: `data` (where samples lie), `protocol`, `area`, `tests` (joined by +), `resume` (a session), `save` (a
    folder for scores), `skip` (steps joined by +), `features` (a folder), `feedback_type`; all others go to the agent.
    """
    register_standins()
    settings = dict(changes.get("settings") or {})
    agents = name_agents(changes.get("agents") or ["random"])
    chosen = {key: settings.pop(key) for key in VISIT_KEYS if key in settings}
    if "tests" in chosen:
        chosen["tests"] = tuple(str(chosen["tests"]).split("+"))
    hints = ("red_light",) if changes.get("redlight") else ()
    visit = Visit(hints=hints, most=changes.get("trials"), **chosen)
    found: dict[str, Any] = {}
    with Client(options["server"], options.get("token")) as client:
        for name, source in agents.items():
            player = make_player(domain, name, source, settings, int(changes.get("seed") or 0))
            found[name] = play_session(client, player, visit)
    return found


def make_player(domain: Domain[Any], name: str, source: AgentSource, settings: Mapping[str, Any], seed: int) -> Player:
    """A player for an agent: by its steps if it has any, else by turns."""
    config = dict(settings)
    root = str(config.pop("data", ""))
    host = {key: config.pop(key) for key in HOST_KEYS if key in config}
    if "skip" in host:
        host["skip"] = str(host["skip"]).split("+")
    named = isinstance(source, str) and ":" in source and not source.startswith(("process:", "wire:"))
    found = load(str(source)) if named else source
    if not isinstance(found, str) and is_hostable(found):
        return StepPlayer(_plain(name), make_hosted(found, config), root, config, **host)
    if isinstance(source, str) and source.startswith("wire:"):
        raise InvalidInput("A wire: program talks to a server by itself; start it with the server's address.")
    factory: AgentFactory = find_agent(source, domain)
    spec = Spec(domain=domain.name, task="Play the tests of a server.")
    return TurnPlayer(_plain(name), lambda: factory(spec, seed), root)


def _plain(name: str) -> str:
    return name.rsplit(":", 1)[-1]
