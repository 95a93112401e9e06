"""Other bytes for the same characters: permutations of the 256 bytes that are their own inverse.

The world applies them at its rim, so that tasks, oracles and serializers never notice.
"""

from __future__ import annotations

import string

from openfield.domains.commai.settings import Settings

_PLAIN = string.ascii_letters + string.digits
_FOREIGN = "".join(map(chr, range(0xC0, 0xC0 + len(_PLAIN))))
"""As many bytes of the upper half, in which the original never says anything."""


def byte_table(settings: Settings) -> dict[int, int]:
    """Which byte stands for which; those that stand for themselves are left out."""
    table: dict[int, int] = {}
    if settings.alphabet == "shifted":
        for letters in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
            half = len(letters) // 2
            table |= _swap(letters[:half], letters[half:])
    elif settings.alphabet == "foreign":
        table |= _swap(_PLAIN, _FOREIGN)
    if settings.separators:
        table |= _swap(".;:", "|~^")
    return table


def _swap(first: str, second: str) -> dict[int, int]:
    return {ord(a): ord(b) for a, b in zip(first + second, second + first, strict=True)}
