"""Serve trials to agents in other programs.

Start with `wire`, which defines the two sides: a wire talks to agents, a dispatcher gives each of them a trial.
`dispatch` has the dispatchers for single trials, `sessions` the one for sessions of many; `assignments` picks the next
trial and `remote` holds the rollout of an agent. `jsonlines` is the wire of domains that bring none; `listen` opens
ports.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.serving.dispatch import SingleDispatcher, TrialDispatcher, serve_domain
    from openfield.serving.jsonlines import JsonLinesWire
    from openfield.serving.remote import RemoteRollout
    from openfield.serving.sessions import Session, SessionDispatcher
    from openfield.serving.wire import Dispatcher, Serving, Wire

__all__ = [
    "Dispatcher",
    "JsonLinesWire",
    "RemoteRollout",
    "Serving",
    "Session",
    "SessionDispatcher",
    "SingleDispatcher",
    "TrialDispatcher",
    "Wire",
    "serve_domain",
]

__getattr__, __dir__ = attach(__name__)
