"""A data directory and a server over it for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="the extra 'ond' is not installed")

from openfield.domains.ond.client.rest_client import RestClient
from support.ond.protocol import OTHER, Client, write_test
from support.ond.serving import server
from support.ond.targets import process, target  # noqa: F401


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
def devmode(data: Path, tmp_path: Path) -> Iterator[Client]:
    made = Client(data, tmp_path / "devmode.sqlite", devmode=True)
    yield made
    made.close()


@pytest.fixture
def compat(data: Path, tmp_path: Path) -> Iterator[Client]:
    made = Client(data, tmp_path / "compat.sqlite", compat=True)
    yield made
    made.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[RestClient]:
    """A client of ours at a server with two tests."""
    write_test(tmp_path / "data", feedback_max_ids=2)
    write_test(tmp_path / "data", "OND.2", feedback_max_ids=2)
    with server(tmp_path, "--data", str(tmp_path / "data"), "--scorings", "9") as (url, _), RestClient(url) as client:
        yield client
