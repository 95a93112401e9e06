"""An assembler for the engine's script language (ACS), so that scenarios need no compiler.

It turns `data/scripts.asm` into the BEHAVIOR lump of a map.

A line holds any number of words: `script NUMBER KIND ARGUMENTS` starts a script, `:name` marks a place, `@name` is its
address, `'text'` a string, `#` begins a comment; every other word is an instruction or a whole number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from openfield.errors import InvalidInput
from openfield.files.data import read_data

INSTRUCTIONS = read_data("openfield.domains.doom", "acs.toml", dict[str, int])
"""The instructions our scripts need, by the engine's numbers."""
KINDS = {"closed": 0, "open": 1, "enter": 4}
_MAGIC = b"ACS\0"
_START = 8
_WORD = 4
Entry = tuple[int, int, int]
"""An entry of the script directory: number and kind of a script, its address, its number of arguments."""


def assemble(source: str) -> bytes:
    """Assemble scripts into the BEHAVIOR lump of a map; refuse unknown words and addresses that are not marked."""
    code: list[int | str] = []
    scripts: list[Entry] = []
    places: dict[str, int] = {}
    strings: dict[str, int] = {}
    words = (word for line in source.splitlines() for word in line.partition("#")[0].split())
    for word in words:
        if word == "script":
            scripts.append(_script(words, len(code)))
        elif word.startswith(":"):
            places[word[1:]] = len(code)
        elif word.startswith("@"):
            code.append(word[1:])
        elif word.startswith("'"):
            code.append(strings.setdefault(word.strip("'"), len(strings)))
        else:
            code.append(_number(word))
    return _lump([_resolve(word, places) for word in code], scripts, list(strings))


def _script(words: Iterator[str], at: int) -> Entry:
    number, kind, arguments = next(words, ""), next(words, ""), next(words, "")
    if kind not in KINDS:
        raise InvalidInput(f"script {number}: '{kind}' is not a kind of script; known are {', '.join(KINDS)}.")
    return _number(number) + 1000 * KINDS[kind], _START + _WORD * at, _number(arguments)


def _number(word: str) -> int:
    try:
        return INSTRUCTIONS[word] if word in INSTRUCTIONS else int(word)
    except ValueError:
        raise InvalidInput(f"'{word}' is neither an instruction of the script language nor a number.") from None


def _resolve(word: int | str, places: dict[str, int]) -> int:
    if isinstance(word, int):
        return word
    if word not in places:
        raise InvalidInput(f"'@{word}' leads nowhere: nothing is marked ':{word}'.")
    return _START + _WORD * places[word]


def _lump(code: list[int], scripts: list[Entry], strings: list[str]) -> bytes:
    """Join the parts of the lump: magic, where the directory is, code, directory, table of strings."""
    body = struct.pack(f"<{len(code)}i", *code)
    directory = struct.pack("<i", len(scripts)) + b"".join(struct.pack("<3i", *script) for script in scripts)
    table = len(body) + _START + len(directory) + _WORD * (1 + len(strings))
    offsets, texts = [len(strings)], b""
    for text in strings:
        offsets.append(table + len(texts))
        texts += text.encode("ascii") + b"\0"
    head = _MAGIC + struct.pack("<i", _START + len(body))
    return head + body + directory + struct.pack(f"<{len(offsets)}i", *offsets) + texts
