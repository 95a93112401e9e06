"""The page of messages is complete, has no paths of a machine, and shows what is printed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from openfield import errors
from support import messages

PAGE = messages.PAGE.read_text(encoding="utf-8")
NEVER_TOLD = {"OpenfieldError", "JournalError"}
"""Roots of the tree, which are raised with the message of a cause."""


@pytest.mark.slow
def test_the_page_shows_what_is_printed_and_written() -> None:
    """In a process of its own: domains that other tests use would be suggested."""
    command = [sys.executable, str(messages.__file__), "--print"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == PAGE, "tests/data/messages.md is old; write it anew: make docs"


def test_every_error_of_the_package_has_a_message() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert kinds <= messages.find_kinds()
    assert messages.find_raised() >= kinds - NEVER_TOLD


def test_the_page_has_no_paths_of_a_machine_and_plain_words() -> None:
    assert not re.search(r"(?<![\w.*])/(tmp|home|root|work|usr)\b", PAGE)
    assert not re.search(r"\b(somebody|whoever|nobody knows|what is none)\b", PAGE)
