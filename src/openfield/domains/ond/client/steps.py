"""How agents of the original client are made and asked to do a step: by `execute`, or by a method named for it.

Beside `host.py`, which knows when each step comes. Agents differ in what they call things; that is all settled here.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from openfield.domains.ond.client.adaptation_name import ADAPTATION, ADAPTION, SPELLINGS, known_spellings
from openfield.errors import AgentProtocol, InvalidInput

STEPS = {
    "Initialize": ("Initialize", "initialize"),
    "FeatureExtraction": ("FeatureExtraction", "feature_extraction"),
    "WorldDetection": ("WorldDetection", "world_detection"),
    "NoveltyClassification": ("NoveltyClassification", "novelty_classification"),
    ADAPTATION: (ADAPTATION, ADAPTION, "novelty_adaptation", "novelty_adaption"),
    "NoveltyCharacterization": ("NoveltyCharacterization", "novelty_characterization"),
}
"""Each step and the names agents have for it."""


def do_step(agent: Any, step: str, tools: dict[str, Any]) -> Any:
    """Does a step as the original client has it done, by `execute`, or by whichever method is named for it."""
    if hasattr(agent, "execute"):
        return _adapt(agent, tools) if step == ADAPTATION else agent.execute(tools, step)
    for method in STEPS[step]:
        found = getattr(agent, method, None)
        if callable(found):
            return found(tools) if _takes_argument(found) else found()
    if step in (ADAPTATION, "NoveltyCharacterization", "Initialize"):
        return None
    raise AgentProtocol(f"The agent has neither execute() nor a method for {step}.")


def may_miss_adaptation(agent: Any) -> bool:
    """Whether nothing says by which spelling an agent knows adaptation, so that it may pass over it."""
    return hasattr(agent, "execute") and not known_spellings(agent)


def make_hosted(found: Any, config: Mapping[str, Any]) -> Any:
    """An agent from a class, a factory or an object, whichever way it likes to be made."""
    if not inspect.isclass(found):
        return found
    try:
        return _make(found, config)
    except TypeError as error:
        given = ", ".join(config) or "none"
        raise InvalidInput(f"{found.__name__} cannot be made from the settings given ({given}): {error}.") from None


def _make(found: Any, config: Mapping[str, Any]) -> Any:
    make: Any = found
    if hasattr(found, "from_config"):
        return make.from_config(dict(config))
    wanted = [
        p for p in inspect.signature(found).parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    if len(wanted) == 1 and wanted[0].name in ("toolset", "config"):
        return make(dict(config))
    return make(**config)


def is_hostable(found: Any) -> bool:
    """Whether something speaks the protocol's steps rather than turns."""
    return hasattr(found, "execute") or any(hasattr(found, name) for names in STEPS.values() for name in names)


def _takes_argument(method: Any) -> bool:
    try:
        return len(inspect.signature(method).parameters) > 0
    except (TypeError, ValueError):
        return True


def _adapt(agent: Any, tools: dict[str, Any]) -> Any:
    """Adaptation by the spelling the agent knows; where that cannot be told, by either.

    If both are known, or none, the longer comes first, and the other if it says that there is no such step. If one is
    known, whatever goes wrong in it is the agent's own.
    """
    known = known_spellings(agent)
    if len(known) == 1:
        return agent.execute(tools, known.pop())
    try:
        return agent.execute(tools, ADAPTATION)
    except Exception as error:
        if not _is_about(error, ADAPTATION):  # the step is known, and something in it went wrong
            raise
        first = error
    try:
        return agent.execute(tools, ADAPTION)
    except Exception as error:
        raise first if _is_about(error, ADAPTION) else error from None


def _is_about(error: Exception, step: str) -> bool:
    """Whether an error says that there is no such step, by whatever name of it."""
    return isinstance(error, NotImplementedError) or any(
        name in str(error) for name, spelling in SPELLINGS.items() if spelling == step
    )
