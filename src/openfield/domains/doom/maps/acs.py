"""An assembler for the engine's script language (ACS), so that scenarios need no compiler.

It turns `data/scripts.asm` into the BEHAVIOR lump of a map.

A line holds any number of words: `script NUMBER KIND ARGUMENTS` starts a script, `:name` marks a place, `@name` is its
address, `'text'` a string, `#` begins a comment; every other word is an instruction or a whole number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from openfield.errors import InvalidInput

INSTRUCTIONS = {
    "terminate": 1, "push": 3, "special1": 4, "special2": 5, "add": 14, "subtract": 15, "multiply": 16, "divide":
    17, "equal": 19, "less": 21, "greater": 22, "store": 25, "store_map": 26, "load": 28, "load_map": 29,
    "increment": 46, "goto": 52, "ifgoto": 53, "drop": 54, "delay": 56, "and": 72, "or": 73, "shift_left": 76,
    "ifnot": 79, "fixed_multiply": 136, "take_inventory": 145, "spawn": 149, "actor_x": 196, "actor_y": 197,
    "actor_z": 198, "sine": 220, "cosine": 221, "property": 246, "set_result": 257, "actor_angle": 260, "set_angle":
    276, "set_position": 283, "player_input": 347, "call": 351,
}  # fmt: skip
"""The instructions our scripts need, by the engine's numbers."""
KINDS = {"closed": 0, "open": 1, "enter": 4}
_MAGIC = b"ACS\0"
_START = 8
_WORD = 4


class AcsScript(msgspec.Struct, frozen=True):
    """An entry of the script directory."""

    number: int
    kind: int
    at: int
    """The index of its first word."""
    arguments: int


def assemble(source: str) -> bytes:
    """Assemble scripts into the BEHAVIOR lump of a map.

    Raises:
        InvalidInput: A word is not in the language, or an address is not marked; the message names it.
    """
    code: list[int | str] = []
    scripts: list[AcsScript] = []
    places: dict[str, int] = {}
    strings: list[str] = []
    words = _words(source)
    for word in words:
        if word == "script":
            scripts.append(_script(words, len(code)))
        elif word.startswith(":"):
            places[word[1:]] = len(code)
        elif word.startswith("@"):
            code.append(word[1:])
        elif word.startswith("'"):
            code.append(_index(strings, word.strip("'")))
        else:
            code.append(_number(word))
    return _lump([_resolve(word, places) for word in code], scripts, strings)


def _words(source: str) -> Iterator[str]:
    for line in source.splitlines():
        yield from line.partition("#")[0].split()


def _script(words: Iterator[str], at: int) -> AcsScript:
    number, kind, arguments = next(words, ""), next(words, ""), next(words, "")
    if kind not in KINDS:
        raise InvalidInput(f"script {number}: '{kind}' is no kind of script; known are {', '.join(KINDS)}.")
    return AcsScript(_number(number), KINDS[kind], at, _number(arguments))


def _index(strings: list[str], text: str) -> int:
    if text not in strings:
        strings.append(text)
    return strings.index(text)


def _number(word: str) -> int:
    try:
        return INSTRUCTIONS[word] if word in INSTRUCTIONS else int(word)
    except ValueError:
        raise InvalidInput(f"'{word}' is no instruction of the script language and no number.") from None


def _resolve(word: int | str, places: dict[str, int]) -> int:
    if isinstance(word, int):
        return word
    if word not in places:
        raise InvalidInput(f"'@{word}' leads nowhere: nothing is marked ':{word}'.")
    return _START + _WORD * places[word]


def _lump(code: list[int], scripts: list[AcsScript], strings: list[str]) -> bytes:
    """Join the parts of the lump: magic, where the directory is, code, directory, table of strings."""
    body = struct.pack(f"<{len(code)}i", *code)
    directory = struct.pack("<i", len(scripts))
    for script in scripts:
        directory += struct.pack(
            "<3i", script.number + 1000 * script.kind, _START + _WORD * script.at, script.arguments
        )
    table = len(body) + _START + len(directory) + _WORD * (1 + len(strings))
    offsets, texts = [len(strings)], b""
    for text in strings:
        offsets.append(table + len(texts))
        texts += text.encode("ascii") + b"\0"
    head = _MAGIC + struct.pack("<i", _START + len(body))
    return head + body + directory + struct.pack(f"<{len(offsets)}i", *offsets) + texts
