"""A data directory and a server over it for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="the extra 'ond' is not installed")

from domains.ond.protocol import OTHER, Client, write_test
from domains.ond.targets import process, target  # noqa: F401


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    write_test(root)
    write_test(root, OTHER)
    return root


@pytest.fixture
def client(data: Path, tmp_path: Path) -> Iterator[Client]:
    made = Client(data, tmp_path / "run.sqlite")
    yield made
    made.close()


@pytest.fixture
def compat(data: Path, tmp_path: Path) -> Iterator[Client]:
    made = Client(data, tmp_path / "compat.sqlite", compat=True)
    yield made
    made.close()
