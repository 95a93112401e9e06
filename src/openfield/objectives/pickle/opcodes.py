"""The opcodes a pickled table may use, each as a step on a small stack.

Nothing is imported, called or built here. Names become labels, numbers become integers, and every opcode that is not
in `STEPS` is refused.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable
from typing import Any

from openfield.objectives.pickle.numpy_scalars import (
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
from openfield.objectives.pickle.pickle_state import BATCH, MARK, Mapping, PickleState

MAX_NUMBER = 255
"""Bytes of one integer; an image of 16 x 16 pixels in 16 levels needs 128."""
MAX_LINE = 2 * MAX_NUMBER + 110
"""Characters of a number of that size in decimal digits, with room to spare."""
SHORT = 50
"""Writers put a thousand entries into a batch. Only the last batch of a mapping has fewer than this."""
MAX_SHORT = 1_000
"""How many shorter batches may come one after the other."""
MAX_NAMES = 100
"""Names and dtypes in a file; there are seven names and twenty-one dtypes."""
MAX_OBJECTS = 1 << 16
"""Texts, names and single bytes in the memo. Python has each of the 256 single bytes once."""
MAX_NUMBERS = 1 << 12
"""NumPy numbers of one byte that are known by their spelling; a dtype has 256."""
SPELLED = 0x43
MAX_MEMO_DIGITS = 10
"""Digits of a memo number in text; the binary ones have 32 bits."""

Step = Callable[[PickleState, bytes, int], int]
"""Takes the bytes and the position after the opcode, returns the position after its argument."""


def _protocol(state: PickleState, data: bytes, at: int) -> int:
    if not 2 <= data[at] <= 5 or state.protocol or state.stack:
        raise Refused("a second or unknown protocol mark")
    state.protocol = data[at]
    return at + 1


def _mark(state: PickleState, data: bytes, at: int) -> int:
    stack = state.stack
    if len(stack) > 2 and stack[-1] is MARK and stack[-2] is MARK and stack[-3] is MARK:
        raise Refused("marks upon marks")
    stack.append(MARK)
    return at


def _mapping(state: PickleState, data: bytes, at: int) -> int:
    state.stack.append(_new_mapping(state))
    return at


def _new_mapping(state: PickleState) -> Mapping:
    if len(state.mappings) == 2:
        raise Refused("more than a table and its code book")
    state.mappings.append(Mapping())
    return state.mappings[-1]


def _mapping_of(state: PickleState, data: bytes, at: int) -> int:
    mapping, items = _new_mapping(state), _above_mark(state)
    set_items(state, mapping, items)
    state.stack.append(mapping)
    return at


def _tuple_of(size: int) -> Step:
    def step(state: PickleState, data: bytes, at: int) -> int:
        stack = state.stack
        items = tuple(stack[-size:])
        if len(items) != size:
            raise Refused("a tuple without its parts")
        stack[-size:] = [check_tuple(items)]
        return at

    return step


def _tuple_to_mark(state: PickleState, data: bytes, at: int) -> int:
    stack = state.stack
    if len(stack) > 3 and stack[-4] is MARK and not state.protocol:
        first, middle, last = stack[-3:]
        if type(first) is type(middle) is type(last) is int:  # a key of protocol 0 or 1
            stack[-4:] = [(first, middle, last)]
            return at
    items = tuple(_above_mark(state))
    if state.protocol and len(items) <= 3:
        raise Refused("a short tuple in the long form, in which no writer of binary pickles puts it")
    state.stack.append(check_tuple(items))
    return at


def check_tuple(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a tuple after checking that it holds no tuples, so that nothing can grow by nesting."""
    for item in items:
        if isinstance(item, tuple) and not isinstance(item, Name):
            raise Refused("a tuple within a tuple")
        if item is MARK or item is BATCH:
            raise Refused("a tuple without its parts")
    return items


def _above_mark(state: PickleState, *, batch: bool = False) -> list[Any]:
    """Remove everything above the last mark and return it; `batch` allows the mark of a batch taken in part."""
    stack = state.stack
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth] is MARK or stack[depth] is BATCH:
            if stack[depth] is BATCH and not batch:
                raise Refused("a batch of entries that ends as something else")
            items = stack[depth + 1 :]
            del stack[depth:]
            return items
    raise Refused("an end without a beginning")


def _set_item(state: PickleState, data: bytes, at: int) -> int:
    """Set one item. Binary pickles do so where a batch has only one, protocol 0 for each."""
    value, key, mapping = state.stack.pop(), state.stack.pop(), state.stack[-1]
    if type(mapping) is Mapping and mapping.kind == "table" and mapping.open:
        state.keys.append(key)
        state.counts.append(value)
    else:
        set_items(state, mapping, [key, value])
    if state.protocol:
        _check_batch(state, 1)
    return at


def _set_marked(state: PickleState, data: bytes, at: int) -> int:
    items = _above_mark(state, batch=True)
    set_items(state, state.stack[-1], items)
    _check_batch(state, len(items) // 2)
    return at


def _check_batch(state: PickleState, size: int) -> None:
    """Refuse a file with short batches one after the other, which would take long to read."""
    state.short += size < SHORT
    if state.short > MAX_SHORT:
        raise Refused("batch after batch of a few entries or none, as no writer makes them")


def set_items(state: PickleState, mapping: Any, items: list[Any]) -> None:
    """Gather entries for a mapping, whose first key decides what it holds. They are checked when they are taken."""
    if not isinstance(mapping, Mapping) or len(items) % 2:
        raise Refused("entries for something that is not a mapping")
    if not mapping.open:
        raise Refused("entries for a mapping of which a Counter was made before")
    if not items:
        return
    mapping.kind = mapping.kind or ("table" if type(items[0]) is tuple else "book")
    keys, values = (state.keys, state.counts) if mapping.kind == "table" else (state.codes, state.indices)
    keys += items[::2]
    values += items[1::2]


def _global(state: PickleState, data: bytes, at: int) -> int:
    module, at = read_line(data, at)
    name, at = read_line(data, at)
    _push_name(state, module, name)
    return at


def _stack_global(state: PickleState, data: bytes, at: int) -> int:
    name, module = state.stack.pop(), state.stack.pop()
    _push_name(state, module, name)
    return at


def _push_name(state: PickleState, module: Any, name: Any) -> None:
    found = allowed_name(module, name, state.protocol)
    state.old_numpy = state.protocol < 3 and ALLOWED[found] in ("scalar", "dtype")
    if state.old_numpy:
        raise Refused("NumPy numbers in a protocol that has no bytes to hold them")
    _count_names(state)
    state.stack.append(found)


def _count_names(state: PickleState) -> None:
    """Count a name or dtype. Writers spell each once and refer to it afterwards."""
    state.names += 1
    if state.names > MAX_NAMES:
        raise Refused(f"more than {MAX_NAMES} names; writers spell each once")


def _reduce(state: PickleState, data: bytes, at: int) -> int:
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
    elif arguments in _EMPTY.get(role, ()):
        state.stack.append(_new_mapping(state))
    elif role == "Counter" and len(arguments) == 1 and isinstance(arguments[0], Mapping) and arguments[0].open:
        arguments[0].open = False
        state.stack.append(arguments[0])
    else:
        raise Refused(f"a call of {function.module}.{function.name}")
    return at


_EMPTY: dict[str, tuple[Any, ...]] = {"defaultdict": ((), (Name("builtins", "int"),)), "OrderedDict": ((),)}
"""The arguments with which mappings begin empty; their entries follow."""


def _read_number(state: PickleState, data: bytes, at: int, end: int) -> int:
    """Take all steps of a NumPy number at once. Return where it ends, or 0 if they must be taken one by one."""
    memo, found = state.memo, _NUMBER.match(data, at, end)
    if found is None:
        return 0
    head, *puts = found.groups()
    value = state.numbers.get(head)
    if value is None:
        value = _number_of(state, head)
    top, count = memo.top, memo.puts
    for put in puts:
        if put:
            key = count if put == b"\x94" else int.from_bytes(put[1:], "little")
            if key <= top:
                return 0
            top, count = key, count + 1
    if value is None or (puts[0] and head[4] != SPELLED):
        return 0
    state.stack.append(value)
    if put:
        memo.add(top, value)
        state.last_put = None
    elif count > memo.puts:
        state.last_put = found  # which, as what was put, is not on the stack
    memo.top, memo.puts, state.unsaved = top, count, not put
    return found.end()


def _number_of(state: PickleState, head: bytes) -> float | None:
    """Return the number that a function and a dtype from the memo make of bytes, if they are what they should be."""
    kind, spelled = state.objects.get(head[3]), head[4] == SPELLED
    raw = head[6:] if spelled else state.objects.get(int.from_bytes(head[5:], "little"))
    try:
        value = make_scalar((kind, raw)) if head[1] == state.memo.function else None
    except Refused:
        return None
    if value is not None and not spelled and len(state.numbers) < MAX_NUMBERS:
        state.numbers[head] = value
    return value


_PUT = rb"(\x94|q.|r.{4})?"
_NUMBER = re.compile(rb"(h.h.(?:h.|j.{4}|C\x02..|C\x04.{4}|C\x08.{8}))%b\x86%bR%b" % ((_PUT,) * 3), re.DOTALL)
"""Function and dtype from the memo, bytes from there or spelled out, pair, call; with the puts of all that is new."""


def _read_key(state: PickleState, data: bytes, at: int, end: int) -> int:
    """Take all steps of a key in digits at once. Return where it ends, or 0 if they must be taken one by one."""
    found = _KEY.match(data, at, end)
    if found is None or state.protocol or not state.stack or state.stack[-1] is MARK:
        return 0
    first, middle, last = found.groups()
    state.stack.append((int(first), int(middle), int(last)))
    return found.end()


_KEY = re.compile(rb"\(%b%b%bt" % ((rb"I(0|[1-9][0-9]{0,9})\n",) * 3))
"""Mark, three integers as lines, tuple: the key of an entry in protocol 0."""


AT_ONCE: dict[int, Callable[[PickleState, bytes, int, int], int]] = {0x68: _read_number, 0x28: _read_key}
"""The first opcode of what is often read at once -> how; it gets where the bytes end that it may read."""


def _build(state: PickleState, data: bytes, at: int) -> int:
    given, kind = state.stack.pop(), state.stack[-1]
    if not isinstance(kind, DType) or kind.order or type(given) is not tuple:
        raise Refused("a state for something that has none, or has one already")
    kind.order = byte_order(kind.kind, given)
    if kind.key >= 0:
        state.memo.learn(kind)
    return at


def opcode_name(code: int) -> str:
    """Return the name of an opcode in the documentation of pickles."""
    import pickletools

    return next((known.name for known in pickletools.opcodes if known.code == chr(code)), f"0x{code:02x}")


def _step_with(use: Callable[[PickleState, int], None], form: str) -> Step:
    """Return the step that does something with a number of this form: push it, or use it as a memo number."""
    unpack, size = struct.Struct(form).unpack_from, struct.calcsize(form)

    def step(state: PickleState, data: bytes, at: int) -> int:
        use(state, unpack(data, at)[0])
        return at + size

    return step


def _memo_text_step(use: Callable[[PickleState, int], None]) -> Step:
    def step(state: PickleState, data: bytes, at: int) -> int:
        text, end = read_line(data, at)
        if not text.isdecimal() or len(text) > MAX_MEMO_DIGITS:
            raise Refused(f"memo entry {shown(text)}")
        use(state, int(text))
        return end

    return step


def _put_next(state: PickleState, data: bytes, at: int) -> int:
    _remember(state, state.memo.puts)
    return at


def _remember(state: PickleState, key: int) -> None:
    """Put the top of the stack into the memo.

    Tuples and the bytes of numbers are not kept: no writer asks for them again, and a million would take 200 MB.
    """
    value, memo = state.stack[-1], state.memo
    if key <= memo.top:
        raise Refused(f"it puts memo entry {key} after entry {memo.top}; writers count upwards")
    if value is MARK or value is BATCH or value is state.last_put:
        raise Refused("a memo of nothing, or of one object twice")
    memo.puts, memo.top = memo.puts + 1, key
    kind = type(value)
    if kind is int or kind is float:
        if not state.unsaved:
            raise Refused("a memo of a plain number; writers keep NumPy's only, and each once")
        state.last_put, state.unsaved = None, False
        memo.add(key, value)
        return
    state.last_put = value
    if kind is not tuple and (kind is not bytes or len(value) == 1):
        state.objects[key] = value
        if len(state.objects) > MAX_OBJECTS:
            raise Refused("more texts and bytes in the memo than any table needs")
    if kind is Name and ALLOWED[value] == "scalar":
        memo.learn_function(key)
    elif kind is DType:
        value.key = key
        if value.order:
            memo.learn(value)


def _recall(state: PickleState, key: int) -> None:
    value = state.objects.get(key)
    if value is None:
        value = state.memo.find(key)
    if value is None:
        raise Refused(f"it refers to memo entry {key}, which holds nothing a table needs")
    state.stack.append(value)


def read_line(data: bytes, at: int) -> tuple[str, int]:
    """Return the text up to the end of the line and the place after it.

    Raises:
        Refused: The line is longer than any number or name.
    """
    end = data.find(b"\n", at, at + MAX_LINE)
    if end < 0:
        if len(data) - at < MAX_LINE:
            raise IndexError("cut short")
        raise Refused("a line longer than any number or name")
    return data[at:end].decode("ascii"), end + 1


def _push(state: PickleState, value: float) -> None:
    state.stack.append(value)


def _take(data: bytes, at: int, size: int) -> bytes:
    """Return the next bytes, all of them."""
    part = data[at : at + size]
    if len(part) != size:
        raise IndexError("cut short")
    return part


_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_REAL = re.compile(r"-?([0-9]{1,40}(\.[0-9]{0,40})?(e[+-]?[0-9]{1,5})?|inf|nan)")
"""Numbers as writers spell them. Unpicklers accept other forms and disagree about them: 010 is 8 for some."""


def _int_text(state: PickleState, data: bytes, at: int) -> int:
    text, end = read_line(data, at)
    if text in ("00", "01"):
        state.stack.append(text == "01")
        return end
    return _push_text(state, text, _WHOLE, end)


def _long_text(state: PickleState, data: bytes, at: int) -> int:
    text, end = read_line(data, at)
    return _push_text(state, text.removesuffix("L"), _WHOLE, end)


def _float_text(state: PickleState, data: bytes, at: int) -> int:
    text, end = read_line(data, at)
    return _push_text(state, text, _REAL, end)


def _push_text(state: PickleState, text: str, form: re.Pattern[str], end: int) -> int:
    if not form.fullmatch(text):
        raise Refused(f"{shown(text)} where a number should be")
    state.stack.append(int(text) if form is _WHOLE else float(text))
    return end


def _sized(form: str, make: Callable[[bytes], Any]) -> Step:
    """Return the step that pushes what is made of some bytes, whose number comes first in this form."""
    unpack, head = struct.Struct(form).unpack_from, struct.calcsize(form)

    def step(state: PickleState, data: bytes, at: int) -> int:
        size = unpack(data, at)[0]
        if size > MAX_NUMBER:
            raise Refused(f"a text of {size} bytes")
        state.stack.append(make(_take(data, at + head, size)))
        return int(at + head + size)

    return step


def _constant(value: Any) -> Step:
    def step(state: PickleState, data: bytes, at: int) -> int:
        state.stack.append(value)
        return at

    return step


_INTEGER = functools.partial(int.from_bytes, byteorder="little", signed=True)
_TEXT = functools.partial(bytes.decode, encoding="ascii")
STEPS: dict[int, Step] = {
    0x49: _int_text, 0x4C: _long_text, 0x46: _float_text,
    0x4B: _step_with(_push, "B"), 0x4D: _step_with(_push, "<H"), 0x4A: _step_with(_push, "<i"),
    0x47: _step_with(_push, ">d"),
    0x8A: _sized("B", _INTEGER), 0x58: _sized("<I", _TEXT), 0x8C: _sized("B", _TEXT), 0x43: _sized("B", bytes),
    0x4E: _constant(None), 0x88: _constant(True), 0x89: _constant(False), 0x29: _constant(()),
    0x80: _protocol, 0x28: _mark, 0x7D: _mapping, 0x64: _mapping_of, 0x73: _set_item, 0x75: _set_marked,
    0x74: _tuple_to_mark, 0x85: _tuple_of(1), 0x86: _tuple_of(2), 0x87: _tuple_of(3),
    0x63: _global, 0x93: _stack_global, 0x52: _reduce, 0x62: _build,
    0x71: _step_with(_remember, "B"), 0x72: _step_with(_remember, "<I"), 0x70: _memo_text_step(_remember),
    0x68: _step_with(_recall, "B"), 0x6A: _step_with(_recall, "<I"), 0x67: _memo_text_step(_recall), 0x94: _put_next,
}  # fmt: skip
"""Opcode -> step, for all protocols."""
