"""NVIDIA cards by name: `cuda`, `cuda:1`."""

from __future__ import annotations

from collections.abc import Callable

from openfield.errors import InvalidInput


def read_card(device: str, option: str) -> int:
    """Return the number of the card that a text names.

    Args:
        device: The text.
        option: What it was given for, as it is written.

    Raises:
        InvalidInput: It names none.
    """
    kind, colon, number = device.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise InvalidInput(f"{option} is 'cpu', 'cuda' or 'cuda:1', not {device!r}.")
    return int(number or 0)


def count_cards(count: Callable[[], int], card: int, option: str) -> None:
    """Check that there is a card.

    Args:
        count: Returns how many there are.
        card: Its number.
        option: What it was given for, as it is written.

    Raises:
        InvalidInput: This machine has no card, or not that one.
    """
    try:
        found, reason = count(), "none was found"
    except Exception as error:
        found, reason = 0, str(error).partition("\n")[0]
    if not found:
        raise InvalidInput(f"No NVIDIA card can be used here ({reason}). Leave {option} out.")
    if card >= found:
        raise InvalidInput(f"There is no cuda:{card}: this machine has {found} card{'s' if found != 1 else ''}.")
