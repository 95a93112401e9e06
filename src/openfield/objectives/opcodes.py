"""The opcodes a pickled table may use, each as a step on a small stack.

Under `pickles`. Nothing is imported, called or built here: names become labels, numbers become integers, and every
opcode that is not in the table at the end is refused.
"""

from __future__ import annotations

import struct
from typing import Any

from openfield.objectives.entries import MARK, Mapping, State
from openfield.objectives.literals import LITERALS, Step, read_line
from openfield.objectives.scalars import (
    ALLOWED,
    DType,
    Name,
    Refused,
    allowed_name,
    byte_order,
    make_dtype,
    make_scalar,
    shown,
)

MOST_EMPTY = 1_000
"""How many batches without an entry may follow each other."""
MEMO_DIGITS = 10
"""Of a memo number in text; the binary ones have 32 bits."""


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
    _set_items(state, mapping, items)
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
    _set_items(state, state.stack[-1], [key, value])
    return at


def _set_marked(state: State, data: bytes, at: int) -> int:
    items = _above_mark(state)
    _set_items(state, state.stack[-1], items)
    state.empty = 0 if items else state.empty + 1  # one may be: the bulk reader has taken its entries
    if state.empty > MOST_EMPTY:
        raise Refused("batch after batch without an entry")
    return at


def _set_items(state: State, mapping: Any, items: list[Any]) -> None:
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
    state.old_numpy |= state.protocol < 3 and ALLOWED[found] == "scalar"
    state.stack.append(found)


def _reduce(state: State, data: bytes, at: int) -> int:
    arguments, function = state.stack.pop(), state.stack.pop()
    if not isinstance(function, Name) or type(arguments) is not tuple:
        raise Refused("a call of something that cannot be called")
    role = ALLOWED[function]
    if role == "scalar":
        state.stack.append(make_scalar(arguments))
        state.unsaved = True
    elif role == "dtype":
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


def _put1(state: State, data: bytes, at: int) -> int:
    _remember(state, data[at])
    return at + 1


def _put4(state: State, data: bytes, at: int) -> int:
    _remember(state, struct.unpack_from("<I", data, at)[0])
    return at + 4


def _put_text(state: State, data: bytes, at: int) -> int:
    key, end = _memo_number(data, at)
    _remember(state, key)
    return end


def _put_next(state: State, data: bytes, at: int) -> int:
    _remember(state, state.scalars.puts)
    return at


def _memo_number(data: bytes, at: int) -> tuple[int, int]:
    text, end = read_line(data, at)
    if not text.isdecimal() or len(text) > MEMO_DIGITS:
        raise Refused(f"memo entry {shown(text)}")
    return int(text), end


def _remember(state: State, key: int) -> None:
    """Keys of the table are never asked for again, and a million of them would cost 200 MB: tuples are not kept."""
    value, scalars = state.stack[-1], state.scalars
    if key <= scalars.top:
        raise Refused(f"it puts memo entry {key} after entry {scalars.top}; writers count upwards")
    if value is MARK or value is state.last_put:
        raise Refused("a memo of nothing, or of one object twice")
    scalars.puts, scalars.top = scalars.puts + 1, key
    kind = type(value)
    if kind is int or kind is float:
        if not state.unsaved:
            raise Refused("a memo of a plain number; writers keep NumPy's only, and each once")
        state.last_put, state.unsaved = None, False
        scalars.add(key, value)
        return
    state.last_put = value
    if kind is tuple:
        return
    if kind is bytes and len(value) == 1:
        scalars.add(key, value)
        return
    state.memo[key] = value
    if kind is Name and ALLOWED[value] == "scalar":
        scalars.function = key
    elif kind is DType:
        value.key = key
        if value.order:
            scalars.learn(value)


def _get1(state: State, data: bytes, at: int) -> int:
    _recall(state, data[at])
    return at + 1


def _get4(state: State, data: bytes, at: int) -> int:
    _recall(state, struct.unpack_from("<I", data, at)[0])
    return at + 4


def _get_text(state: State, data: bytes, at: int) -> int:
    key, end = _memo_number(data, at)
    _recall(state, key)
    return end


def _recall(state: State, key: int) -> None:
    value = state.memo.get(key)
    if value is None:
        value = state.scalars.find(key)
    if value is None:
        raise Refused(f"it refers to memo entry {key}, which holds nothing a table needs")
    state.stack.append(value)


def opcode_name(code: int) -> str:
    """The opcode as the pickle documentation calls it."""
    import pickletools

    return next((known.name for known in pickletools.opcodes if known.code == chr(code)), f"0x{code:02x}")


STEPS: dict[int, Step] = {
    **LITERALS,
    0x80: _protocol, 0x28: _mark,
    0x7D: _mapping, 0x64: _mapping_of, 0x74: _tuple_to_mark, 0x85: _tuple_of(1), 0x86: _tuple_of(2),
    0x73: _set_item, 0x75: _set_marked,
    0x63: _global, 0x93: _stack_global, 0x52: _reduce, 0x62: _build,
    0x71: _put1, 0x72: _put4, 0x70: _put_text, 0x94: _put_next,
    0x68: _get1, 0x6A: _get4, 0x67: _get_text,
}  # fmt: skip
