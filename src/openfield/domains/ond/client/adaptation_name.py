"""Which of its two spellings an agent knows adaptation by: read off its code, as passing over a step leaves no trace.

Beside `steps.py`, which asks for the steps.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from types import CodeType, FunctionType, ModuleType
from typing import Any

ADAPTATION, ADAPTION = "NoveltyAdaptation", "NoveltyAdaption"
"""The two spellings of one step; older agents leave out two letters."""
SPELLINGS = {ADAPTATION: ADAPTATION, "novelty_adaptation": ADAPTATION}
SPELLINGS |= {ADAPTION: ADAPTION, "novelty_adaption": ADAPTION}
MOST = 400
"""So many functions are read; an agent's own come first, libraries it uses last."""


def known_spellings(agent: Any) -> set[str]:
    """The spellings an agent, or else an agent inside it, knows: those its code names, or else its methods."""
    inner = [part for part in getattr(agent, "__dict__", {}).values() if hasattr(part, "execute")]
    for one in (agent, *inner):
        for texts in (*_texts_by_distance(list(_parts(one))), _method_names(one)):
            if found := {SPELLINGS[text] for text in texts if text in SPELLINGS}:
                return found
    return set()


def _method_names(agent: Any) -> Iterator[str]:
    return (name for kind in type(agent).__mro__[:-1] for name in vars(kind))


def _parts(agent: Any) -> Iterator[Any]:
    """An agent's attributes and methods; what a class overrides counts only where it is called by `super`."""
    yield from getattr(agent, "__dict__", {}).values()
    seen: dict[str, bool] = {}
    for kind in type(agent).__mro__[:-1]:
        for name, part in vars(kind).items():
            if seen.get(name, True):
                yield part
                seen[name] = any("super" in function.__code__.co_names for function in _functions(part))


def _texts_by_distance(parts: list[Any]) -> Iterator[set[str]]:
    """All texts in values and functions, then in whatever those use, and so on."""
    seen: set[int] = set()
    texts: set[str] = set()
    while parts and len(seen) < MOST:
        texts |= {text for part in parts for text in _texts(part)}
        if seen:  # what functions hold as constants belongs to them
            yield texts
        new = {id(function): function for part in parts for function in _functions(part) if id(function) not in seen}
        seen |= new.keys()
        parts = [used for function in new.values() for used in _used_by(function)]
    yield texts


def _functions(part: Any) -> Iterator[FunctionType]:
    """The function behind a method, a property, a partial one, and what a decorator was put around."""
    if isinstance(part, functools.partial | functools.partialmethod):
        part = part.func
    for one in (part, getattr(part, "__func__", None), getattr(part, "fget", None)):
        while isinstance(one, FunctionType):
            yield one
            one = getattr(one, "__wrapped__", None)


def _used_by(function: FunctionType) -> Iterator[Any]:
    """What a function closes over, holds as constants, and names of its module and of modules it names."""
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
    """A piece of code and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _texts(value: Any) -> Iterator[str]:
    """A text, or those of a table, keys of mappings and names of choices included."""
    if isinstance(value, EnumMeta):
        members: Mapping[str, Any] = value.__members__
        value = [member.value for member in members.values()]
    elif isinstance(value, type):
        value = list(vars(value).values())
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | frozenset | Mapping):
        yield from (one for one in value if isinstance(one, str))
