"""The opcodes a pickled table may use, each as a step on a small stack.

Under `pickles`. Nothing is imported, called or built here: names become labels, numbers become integers, and every
opcode that is not in the table at the end is refused.
"""

from __future__ import annotations

from typing import Any

from openfield.objectives.pickle.literals import LITERALS, OLD_LITERALS, TEXT_LITERALS, Step, read_line
from openfield.objectives.pickle.memo_opcodes import get1, get4, get_text, put1, put4, put_next, put_text
from openfield.objectives.pickle.scalars import (
    ALLOWED,
    DType,
    Name,
    Refused,
    allowed_name,
    byte_order,
    make_dtype,
    make_scalar,
)
from openfield.objectives.pickle.state import MARK, Mapping, State

SHORT = 50
"""Entries of a batch that only the last one of a mapping has fewer of: writers put a thousand into each."""
MOST_SHORT = 1_000
"""How many shorter batches may come before entries that can be read in bulk."""
MOST_NAMES = 100
"""Names and kinds of numbers in a file, of which there are five and twenty."""


def _protocol(state: State, data: bytes, at: int) -> int:
    if not 2 <= data[at] <= 5 or state.protocol or state.stack:
        raise Refused("a second or unknown protocol mark")
    state.protocol = data[at]
    return at + 1


def _mark(state: State, data: bytes, at: int) -> int:
    if state.stack[-3:] == [MARK, MARK, MARK]:
        raise Refused("marks upon marks")
    state.stack.append(MARK)
    return at


def _mapping(state: State, data: bytes, at: int) -> int:
    state.stack.append(_new_mapping(state))
    return at


def _new_mapping(state: State) -> Mapping:
    if len(state.mappings) == 2:
        raise Refused("more than a table and its code book")
    state.mappings.append(Mapping())
    return state.mappings[-1]


def _mapping_of(state: State, data: bytes, at: int) -> int:
    mapping, items = _new_mapping(state), _above_mark(state)
    set_items(state, mapping, items)
    state.stack.append(mapping)
    return at


def _tuple_of(size: int) -> Step:
    def step(state: State, data: bytes, at: int) -> int:
        stack = state.stack
        items = tuple(stack[-size:])
        if len(items) != size:
            raise Refused("a tuple without its parts")
        stack[-size:] = [check_tuple(items)]
        return at

    return step


def _tuple_to_mark(state: State, data: bytes, at: int) -> int:
    items = tuple(_above_mark(state))
    if state.protocol and len(items) <= 3:
        raise Refused("a short tuple in the long form, in which no writer of binary pickles puts it")
    state.stack.append(check_tuple(items))
    return at


def check_tuple(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tuples hold numbers, or the parts of a NumPy number; never tuples, so nothing can grow by nesting."""
    for item in items:
        if isinstance(item, tuple) and not isinstance(item, Name):
            raise Refused("a tuple within a tuple")
        if item is MARK:
            raise Refused("a tuple without its parts")
    return items


def _above_mark(state: State) -> list[Any]:
    stack = state.stack
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth] is MARK:
            items = stack[depth + 1 :]
            del stack[depth:]
            return items
    raise Refused("an end without a beginning")


def _set_item(state: State, data: bytes, at: int) -> int:
    value, key = state.stack.pop(), state.stack.pop()
    set_items(state, state.stack[-1], [key, value])
    return at


def _set_last(state: State, data: bytes, at: int) -> int:
    """Writers of binary pickles set one item so if it is the only one of a batch."""
    _check_batch(state, 1)
    return _set_item(state, data, at)


def _set_marked(state: State, data: bytes, at: int) -> int:
    items = _above_mark(state)
    set_items(state, state.stack[-1], items)
    _check_batch(state, len(items) // 2)
    return at


def _check_batch(state: State, size: int) -> None:
    """Batches may be short, also because the bulk reader has taken their entries, but not one after the other."""
    state.short += size < SHORT
    if state.short > MOST_SHORT:
        raise Refused("batch after batch of a few entries or none, as no writer makes them")


def set_items(state: State, mapping: Any, items: list[Any]) -> None:
    """Entries for a mapping; what its first key is decides what it holds. They are checked when they are taken."""
    if not isinstance(mapping, Mapping) or len(items) % 2:
        raise Refused("entries for something that is not a mapping")
    if not items:
        return
    mapping.kind = mapping.kind or ("table" if type(items[0]) is tuple else "book")
    keys, values = (state.keys, state.counts) if mapping.kind == "table" else (state.codes, state.indices)
    keys += items[::2]
    values += items[1::2]


def _global(state: State, data: bytes, at: int) -> int:
    module, at = read_line(data, at)
    name, at = read_line(data, at)
    _push_name(state, module, name)
    return at


def _stack_global(state: State, data: bytes, at: int) -> int:
    name, module = state.stack.pop(), state.stack.pop()
    _push_name(state, module, name)
    return at


def _push_name(state: State, module: Any, name: Any) -> None:
    found = allowed_name(module, name, state.protocol)
    state.old_numpy = state.protocol < 3 and ALLOWED[found] in ("scalar", "dtype")
    if state.old_numpy:
        raise Refused("NumPy numbers in a protocol that has no bytes to hold them")
    _count_names(state)
    state.stack.append(found)


def _count_names(state: State) -> None:
    """Writers spell a name or a kind of number once and refer to it ever after."""
    state.names += 1
    if state.names > MOST_NAMES:
        raise Refused(f"more than {MOST_NAMES} names; writers spell each once")


def _reduce(state: State, data: bytes, at: int) -> int:
    arguments, function = state.stack.pop(), state.stack.pop()
    if not isinstance(function, Name) or type(arguments) is not tuple:
        raise Refused("a call of something that cannot be called")
    role = ALLOWED[function]
    if role == "scalar":
        state.stack.append(make_scalar(arguments))
        state.unsaved = True
    elif role == "dtype":
        _count_names(state)
        state.stack.append(make_dtype(arguments))
    elif role == "defaultdict" and arguments in ((), (Name("builtins", "int"),)):
        state.stack.append(_new_mapping(state))
    else:
        raise Refused(f"a call of {function.module}.{function.name}")
    return at


def _build(state: State, data: bytes, at: int) -> int:
    given, kind = state.stack.pop(), state.stack[-1]
    if not isinstance(kind, DType) or kind.order or type(given) is not tuple:
        raise Refused("a state for something that has none, or has one already")
    kind.order = byte_order(kind.kind, given)
    if kind.key >= 0:
        state.scalars.learn(kind)
    return at


def opcode_name(code: int) -> str:
    """The opcode as the pickle documentation calls it."""
    import pickletools

    return next((known.name for known in pickletools.opcodes if known.code == chr(code)), f"0x{code:02x}")


_EITHER: dict[int, Step] = {0x28: _mark, 0x74: _tuple_to_mark, 0x63: _global, 0x52: _reduce}
_BINARY: dict[int, Step] = {
    **_EITHER, 0x7D: _mapping, 0x73: _set_last, 0x75: _set_marked,
    0x71: put1, 0x72: put4, 0x68: get1, 0x6A: get4,
}  # fmt: skip
TEXT_STEPS: dict[int, Step] = {
    **_EITHER, **TEXT_LITERALS, 0x64: _mapping_of, 0x73: _set_item, 0x70: put_text, 0x67: get_text,
}  # fmt: skip
"""Those that writers of protocol 0 use."""
OLD_STEPS: dict[int, Step] = {**_BINARY, **OLD_LITERALS}
"""Those of protocol 1."""
STEPS: dict[int, Step] = {
    **_BINARY, **LITERALS,
    0x80: _protocol, 0x85: _tuple_of(1), 0x86: _tuple_of(2), 0x87: _tuple_of(3),
    0x93: _stack_global, 0x62: _build, 0x94: put_next,
}  # fmt: skip
"""Those of all later protocols."""
