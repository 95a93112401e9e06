"""Call the steps of agents written for the original client: by `execute(toolset, step)`, or by a method named for one.

`step_player.py` knows when each step comes. Adaptation has two spellings: older agents leave out two letters. An agent
that does not know a step may pass over it without a trace, so the spelling it knows is read from its code.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from types import CodeType, FunctionType, ModuleType
from typing import Any

from openfield.errors import AgentProtocol, InvalidInput

ADAPTATION, ADAPTION = "NoveltyAdaptation", "NoveltyAdaption"
"""The two spellings of one step."""
SPELLINGS = {ADAPTATION: ADAPTATION, "novelty_adaptation": ADAPTATION}
SPELLINGS |= {ADAPTION: ADAPTION, "novelty_adaption": ADAPTION}
STEPS = {
    "Initialize": ("Initialize", "initialize"),
    "FeatureExtraction": ("FeatureExtraction", "feature_extraction"),
    "WorldDetection": ("WorldDetection", "world_detection"),
    "NoveltyClassification": ("NoveltyClassification", "novelty_classification"),
    ADAPTATION: (ADAPTATION, ADAPTION, "novelty_adaptation", "novelty_adaption"),
    "NoveltyCharacterization": ("NoveltyCharacterization", "novelty_characterization"),
}
"""Each step and the names agents have for it."""
MAX_FUNCTIONS = 400
"""How many functions are read; an agent's own come first, those of libraries it uses last."""


def has_steps(found: Any) -> bool:
    """Return whether an agent has the protocol's steps, and does not reply to turns."""
    return hasattr(found, "execute") or any(hasattr(found, name) for names in STEPS.values() for name in names)


def make_step_agent(found: Any, config: Mapping[str, Any]) -> Any:
    """Make an agent from its class and settings; anything but a class is returned as it is."""
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


def may_miss_adaptation(agent: Any) -> bool:
    """Return whether an agent's code names neither spelling of adaptation, so that it may pass over the step."""
    return hasattr(agent, "execute") and not known_spellings(agent)


def _adapt(agent: Any, toolset: dict[str, Any]) -> Any:
    """Call adaptation by the spelling the agent knows.

    If its code names both spellings or neither, the longer one is tried first, and the other one if the agent says that
    there is no such step. If its code names one, every error in it is the agent's own.
    """
    known = known_spellings(agent)
    if len(known) == 1:
        return agent.execute(toolset, known.pop())
    try:
        return agent.execute(toolset, ADAPTATION)
    except Exception as error:
        if not _is_about(error, ADAPTATION):  # the step is known, and something in it went wrong
            raise
        first = error
    try:
        return agent.execute(toolset, ADAPTION)
    except Exception as error:
        raise first if _is_about(error, ADAPTION) else error from None


def _is_about(error: Exception, step: str) -> bool:
    """Return whether an error says that there is no such step, by any name of it."""
    return isinstance(error, NotImplementedError) or any(
        name in str(error) for name, spelling in SPELLINGS.items() if spelling == step
    )


def known_spellings(agent: Any) -> set[str]:
    """Return the spellings of adaptation that an agent, or else an agent inside it, has in its code or method names."""
    inner = [part for part in getattr(agent, "__dict__", {}).values() if hasattr(part, "execute")]
    for one in (agent, *inner):
        methods = {name for kind in type(one).__mro__[:-1] for name in vars(kind)}
        for texts in (*_texts_by_distance(list(_parts(one))), methods):
            if found := {SPELLINGS[text] for text in texts if text in SPELLINGS}:
                return found
    return set()


def _parts(agent: Any) -> Iterator[Any]:
    """Yield an agent's attributes and methods; an overridden method counts only if it is called by `super`."""
    yield from getattr(agent, "__dict__", {}).values()
    seen: dict[str, bool] = {}
    for kind in type(agent).__mro__[:-1]:
        for name, part in vars(kind).items():
            if seen.get(name, True):
                yield part
                seen[name] = any("super" in function.__code__.co_names for function in _functions(part))


def _texts_by_distance(parts: list[Any]) -> Iterator[set[str]]:
    """Yield all texts in values and functions, then also those in everything these use, and so on."""
    seen: set[int] = set()
    texts: set[str] = set()
    while parts and len(seen) < MAX_FUNCTIONS:
        texts |= {text for part in parts for text in _texts(part)}
        if seen:  # what functions hold as constants belongs to them
            yield texts
        new = {id(function): function for part in parts for function in _functions(part) if id(function) not in seen}
        seen |= new.keys()
        parts = [used for function in new.values() for used in _used_by(function)]
    yield texts


def _functions(part: Any) -> Iterator[FunctionType]:
    """Yield the function behind a method, a property or a partial one, and the functions a decorator wraps."""
    if isinstance(part, functools.partial | functools.partialmethod):
        part = part.func
    for one in (part, getattr(part, "__func__", None), getattr(part, "fget", None)):
        while isinstance(one, FunctionType):
            yield one
            one = getattr(one, "__wrapped__", None)


def _used_by(function: FunctionType) -> Iterator[Any]:
    """Yield what a function closes over, its constants, and what it names in its module and in modules it names."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for code in _codes(function.__code__):
        yield from code.co_consts
        for name in code.co_names:
            found = function.__globals__.get(name)
            if isinstance(found, ModuleType):
                yield from (vars(found).get(other) for other in code.co_names)
            else:
                yield found


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a piece of code and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _texts(value: Any) -> Iterator[str]:
    """Yield a text, or the texts in a collection, among the keys of a mapping, or among the values of an enum."""
    if isinstance(value, EnumMeta):
        members: Mapping[str, Any] = value.__members__
        value = [member.value for member in members.values()]
    elif isinstance(value, type):
        value = list(vars(value).values())
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | frozenset | Mapping):
        yield from (one for one in value if isinstance(one, str))
