"""Levels as digits of one long number per frame.

The inner step of `frames.encode`: a few shifts where levels are bits, multiplication by hand where they are not.
"""

from __future__ import annotations

import numpy as np

from openfield.objectives.tables.histograms import Array

LIMB = 32
"""Bits of a limb: the product of two fits a word."""


def pack_digits(digits: Array, base: int) -> Array:
    """The numbers sum(digit[i] * base**i) as rows of 64-bit words, lowest first, two at least."""
    bits = max((base - 1).bit_length(), 1)
    if base == 1 << bits and bits in (1, 2, 4, 8):
        return _pack_bits(digits, bits)
    return _pack_limbs(digits, base)


def _pack_bits(digits: Array, bits: int) -> Array:
    """Digits of 1, 2, 4 or 8 bits, put together byte by byte."""
    count, length = digits.shape
    per_byte = 8 // bits
    words = max(2, -(-length * bits // 64))
    small = digits.astype(np.uint8)
    if length != words * 8 * per_byte:
        small = np.pad(small, ((0, 0), (0, words * 8 * per_byte - length)))
    parts = small.reshape(count, words * 8, per_byte)
    packed = parts[:, :, 0].copy()
    for place in range(1, per_byte):
        packed |= parts[:, :, place] << np.uint8(place * bits)
    return packed.view("<u8")


def _pack_limbs(digits: Array, base: int) -> Array:
    """Any base: from the highest digits down, multiply all limbs and add."""
    count, length = digits.shape
    words = max(2, -(-_bit_length(base, length) // 64))
    limbs = np.zeros((2 * words, count), np.uint64)
    for at in range(length - 1, -1, -1):
        carry = digits[:, at].astype(np.uint64)
        for limb in limbs:
            product = limb * np.uint64(base) + carry
            limb[:] = product & np.uint64(0xFFFFFFFF)
            carry = product >> np.uint64(LIMB)
    return np.ascontiguousarray((limbs[0::2] | limbs[1::2] << np.uint64(LIMB)).T)


def _bit_length(base: int, length: int) -> int:
    return int(base**length - 1).bit_length()
