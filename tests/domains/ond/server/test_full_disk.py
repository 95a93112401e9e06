"""A disk that is really full: refused with the protocol's error object, nothing half kept, and the server goes on."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from openfield.cli import run_command
from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.data_directory import DataDirectory
from support.ond.protocol import TEST, answers, write_test
from support.ond.serving import server

ROOM = 400_000


def limit_files() -> None:
    """Files may not grow beyond this; writing more fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))


def test_a_full_disk_refuses_and_room_mends_it(tmp_path: Path) -> None:
    write_test(tmp_path / "data", count=1000, onset=500)
    test = DataDirectory(tmp_path / "data").load("OND", "image_classification", TEST)[0]
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}

    def post(number: int) -> None:
        ids = test.ids[number * 10 : number * 10 + 10]
        ballast = "".join(f"{key},{os.urandom(4000).hex()}\n" for key in ids)
        client.post(session, TEST, number, answers(test, ids) | {"x_ballast": ballast})

    def fits(number: int) -> bool:
        try:
            post(number)
        except Refusal as refusal:
            told.append((refusal.status, refusal.reason))
        return not told

    told: list[tuple[int, str]] = []
    with (
        server(tmp_path, "--data", str(tmp_path / "data"), prepare=limit_files) as (url, process),
        RestClient(url) as client,
    ):
        session = client.open(asked, [TEST])
        kept = next(number for number in range(100) if not fits(number))
        assert kept > 0
        assert told == [(500, "StorageError")]
        assert client.metadata(session, TEST)["round_size"] == 10  # it lives, and still answers
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        post(kept)  # the refused post left no trace, so it can be made again
        with pytest.raises(Refusal, match="DetectionRepost"):
            post(kept)
        with pytest.raises(Refusal, match="DetectionRepost"):
            post(kept - 1)
    assert run_command(["verify", str(tmp_path / "served.sqlite")]) == 0
