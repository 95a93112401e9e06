"""How agents of the original client are made and asked to do a step: by `execute`, or by a method named for it.

Beside `host.py`, which knows when each step comes. Agents differ in what they call things; that is all settled here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

from openfield.errors import AgentProtocol, InvalidInput

ADAPTATION, ADAPTION = "NoveltyAdaptation", "NoveltyAdaption"
"""The two spellings of one step; older agents leave out two letters."""
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
    """Adaptation by the spelling the agent knows: the likelier first, the other if it says that there is no such step.

    Agents that pass over steps they do not know cannot be told by trying; but the steps they know are named somewhere.
    """
    inner = (part for part in getattr(agent, "__dict__", {}).values() if hasattr(part, "execute"))
    known = next(filter(None, ({ADAPTATION, ADAPTION}.intersection(_names(one)) for one in (agent, *inner))), set())
    likely, other = (ADAPTION, ADAPTATION) if known == {ADAPTION} else (ADAPTATION, ADAPTION)
    try:
        return agent.execute(tools, likely)
    except Exception as error:
        if not _is_about(error, likely):  # the step is known, and something in it went wrong
            raise
        first = error
    try:
        return agent.execute(tools, other)
    except Exception as error:
        raise first if _is_about(error, other) else error from None


def _is_about(error: Exception, step: str) -> bool:
    """Whether an error says that there is no such step, by whatever name of it."""
    return isinstance(error, NotImplementedError) or any(name in str(error) for name in (step, _snake(step)))


def _snake(step: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in step).lstrip("_")


def _names(agent: Any) -> Iterator[str]:
    """All texts in an agent's methods, their names, tables they use, and its attributes."""
    kinds = [vars(kind) for kind in type(agent).__mro__[:-1]]
    for kind in kinds:
        yield from kind
    for part in (value for place in (getattr(agent, "__dict__", {}), *kinds) for value in place.values()):
        function = getattr(part, "__func__", part)
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            yield from _texts_of_code(code, function.__globals__)
        else:
            yield from _texts(part)


def _texts_of_code(code: CodeType, module: Mapping[str, Any]) -> Iterator[str]:
    yield from (text for name in code.co_names if name in module for text in _texts(module[name]))
    for constant in code.co_consts:
        yield from _texts_of_code(constant, module) if isinstance(constant, CodeType) else _texts(constant)


def _texts(value: Any) -> Iterator[str]:
    """A text, or those of a table, keys of mappings included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | frozenset | dict):
        yield from (one for one in value if isinstance(one, str))
