"""Pack the levels of a frame as the digits of one long integer.

The inner step of `encode`: shifts if the base is a power of two, else multiplication limb by limb.
"""

from __future__ import annotations

import numpy as np

from openfield.objectives.tables.histograms import Array

LIMB = 32
"""Bits of a limb: the product of two fits into 64 bits."""


def pack_digits(digits: Array, base: int) -> Array:
    """Compute sum(digit[i] * base**i) for each row, as at least two 64-bit words, the lowest first."""
    bits = max((base - 1).bit_length(), 1)
    if base == 1 << bits and bits in (1, 2, 4, 8):
        return _pack_bits(digits, bits)
    return _pack_limbs(digits, base)


def _pack_bits(digits: Array, bits: int) -> Array:
    """Pack digits of 1, 2, 4 or 8 bits byte by byte."""
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
    """Pack digits of any base: from the highest digit down, multiply all limbs by the base and add the digit."""
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
