"""Call the steps of agents written for the original client: by `execute(toolset, step)`, or by a method named for one.

`step_player.py` knows when each step comes. Adaptation has two spellings: older agents leave out two letters. An agent
that does not know a step may pass over it without a trace, so the name it gets notes whether the agent recognises it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from openfield.errors import AgentProtocol, InvalidInput

ADAPTATION, ADAPTION = "NoveltyAdaptation", "NoveltyAdaption"
"""The two spellings of one step."""
METHODS = {ADAPTATION: (ADAPTATION, "novelty_adaptation"), ADAPTION: (ADAPTION, "novelty_adaption")}
"""Each spelling and the methods named for it."""
STEPS = {
    "Initialize": ("Initialize", "initialize"),
    "FeatureExtraction": ("FeatureExtraction", "feature_extraction"),
    "WorldDetection": ("WorldDetection", "world_detection"),
    "NoveltyClassification": ("NoveltyClassification", "novelty_classification"),
    ADAPTATION: (ADAPTATION, ADAPTION, "novelty_adaptation", "novelty_adaption"),
    "NoveltyCharacterization": ("NoveltyCharacterization", "novelty_characterization"),
}
"""Each step and the names agents have for it."""
PASSED_OVER = object()
"""What adaptation returns if the agent seems to know it by neither spelling."""


def has_steps(found: Any) -> bool:
    """Return whether an agent has the protocol's steps, and does not reply to turns."""
    return hasattr(found, "execute") or any(hasattr(found, name) for names in STEPS.values() for name in names)


def make_step_agent(found: Any, config: Mapping[str, Any]) -> Any:
    """Make an agent from its class and settings; anything but a class is returned as it is."""
    if not inspect.isclass(found):
        return found
    make: Any = getattr(found, "from_config", found)
    try:
        parameters = inspect.signature(found).parameters.values() if make is found else ()
        wanted = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
        whole = make is not found or [one.name for one in wanted] in (["toolset"], ["config"])
        return make(dict(config)) if whole else make(**config)
    except TypeError as error:
        given = ", ".join(config) or "none"
        raise InvalidInput(f"{found.__name__} cannot be made from the settings given ({given}): {error}.") from None


def call_step(agent: Any, step: str, toolset: dict[str, Any]) -> Any:
    """Call a step of an agent and return its result: by `execute`, or else by the first method named for the step."""
    if hasattr(agent, "execute"):
        return _adapt(agent, toolset) if step == ADAPTATION else agent.execute(toolset, step)
    for method in STEPS[step]:
        found = getattr(agent, method, None)
        if callable(found):
            return found(toolset) if _takes_argument(found) else found()
    if step in (ADAPTATION, "NoveltyCharacterization", "Initialize"):
        return None
    raise AgentProtocol(f"The agent has neither execute() nor a method for {step}.")


def _takes_argument(method: Any) -> bool:
    try:
        return len(inspect.signature(method).parameters) > 0
    except (TypeError, ValueError):
        return True


class AdaptationName(str):
    """A spelling of adaptation that notes whether the agent recognises it: finds it equal, or reads it by a method."""

    recognised = False

    def __eq__(self, other: object) -> bool:
        equal = super().__eq__(other) is True
        self.recognised = self.recognised or equal
        return equal

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __contains__(self, part: Any) -> bool:
        self.recognised = True
        return super().__contains__(part)

    def __getattribute__(self, name: str) -> Any:
        if hasattr(str, name) and not name.startswith("_"):  # `lower`, `startswith` and so on
            self.recognised = True
        return super().__getattribute__(name)


def _adapt(agent: Any, toolset: dict[str, Any]) -> Any:
    """Call adaptation by one spelling, and by the other if the agent did not recognise it or says it has no such step.

    The spelling that a method of the agent has comes first, else the longer one. Any other error is the agent's own.
    """
    owners = [agent, *(part for part in getattr(agent, "__dict__", {}).values() if hasattr(part, "execute"))]
    named = [name for name, methods in METHODS.items() if any(hasattr(one, m) for one in owners for m in methods)]
    names = [AdaptationName(name) for name in sorted(METHODS, key=lambda name: name not in named)]
    unknown: list[Exception] = []
    for name in names:
        try:
            returned = agent.execute(toolset, name)
        except Exception as error:
            if not _says_unknown(error, name):
                raise
            unknown.append(error)
        else:
            if name.recognised or returned is not None or len(named) == len(names):
                return returned
    if len(unknown) == len(names) or (unknown and names[0].recognised):
        raise unknown[0]
    return None if unknown or named else PASSED_OVER


def _says_unknown(error: Exception, name: AdaptationName) -> bool:
    """Return whether an error says that there is no such step; an agent that recognises a name may fail in the step."""
    named = any(method in str(error) for method in METHODS[str(name)])
    return isinstance(error, NotImplementedError) or (named and not name.recognised)
