"""Servers under attack: one in process and one over a socket, watched while cases are tried on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ond.protocol import OTHER, TEST, Caller, Client, Requests, answers, known, write_test
from support.ond.serving import server


class Target:
    """A server under attack, where it keeps its files, and what it says on its own terminal."""

    def __init__(self, client: Requests, folder: Path, log: Path | None) -> None:
        self.client, self.folder, self.log = client, folder, log

    def files(self) -> set[str]:
        """All files there are; what SQLite and the lock keep beside the run file comes and goes."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        return {name for name in found if not name.endswith(("-wal", "-shm", ".lock"))}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One server process for all cases."""
    folder = tmp_path_factory.mktemp("attacked")
    for name in (TEST, OTHER):
        write_test(folder / "data", name)
    log = folder.parent / f"{folder.name}.log"
    with (
        log.open("w") as errors,
        server(folder, "--data", str(folder / "data"), "--scorings", "1000", errors=errors) as (url, _),
    ):
        client = Caller(folder / "data", url)
        yield Target(client, folder, log)
        client.close()


@pytest.fixture(params=["in process", "over a socket"])
def target(request: pytest.FixtureRequest, data: Path, tmp_path: Path, caplog) -> Iterator[Target]:
    """Each case against both; afterwards nothing has been shown or touched that is not the attacker's."""
    if request.param == "in process":
        found = Target(Client(data, tmp_path / "served.sqlite"), tmp_path, None)
    else:
        found = request.getfixturevalue("process")
    client = found.client
    bystander = client.open(TEST, OTHER, novelty_detector_version="bystander")
    assert client.post(bystander, 0, **answers(known(client), known(client).ids[:10])).text == "OK"
    before = state(client, bystander)
    yield found
    assert state(client, bystander) == before
    said = caplog.text if found.log is None else found.log.read_text()
    assert "Traceback" not in said
    if isinstance(client, Client):
        client.close()


def state(client: Requests, session: str) -> list[Any]:
    """What a client can see of a session."""
    asked = {"session_id": session}
    return [
        client.ask("GET", "/session/latest", params=asked).json(),
        client.ask("GET", "/session/status", params=asked).text,
        client.ask("GET", "/test/metadata", params=asked | {"test_id": TEST}).json(),
        client.dataset(session, 1).text,
        len(client.ask("GET", "/session/zip", params=asked).content),
    ]
