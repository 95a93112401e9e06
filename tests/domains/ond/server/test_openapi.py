"""The server does what its OpenAPI document says, whatever is asked: schemathesis over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.server.routes import OPERATIONS
from support.ond.protocol import OTHER, TEST, write_test
from support.ond.serving import server

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

REQUESTS = [(path, method) for path in OPERATIONS for method in OPERATIONS[path]]
REFUSED = [positive_data_acceptance]
"""A session that does not exist is refused with 400: the protocol's clients know no 404."""
QUIET = settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server with an open session: its address and the session."""
    folder = tmp_path_factory.mktemp("served")
    write_test(folder / "data")
    write_test(folder / "data", OTHER)
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}
    with server(folder, "--data", str(folder / "data")) as (url, _), RestClient(url) as client:
        yield url, client.open(asked, [TEST])


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("path", "method"), REQUESTS)
def test_the_document_holds(served: tuple[str, str], path: str, method: str, mode: Any) -> None:
    url, session = served
    operation = schemathesis.openapi.from_url(f"{url}/openapi.json")[path][method]

    @QUIET
    @given(case=operation.as_strategy(generation_mode=mode))
    def probe(case: Any) -> None:
        case.call_and_validate(excluded_checks=REFUSED)

    @QUIET
    @given(case=operation.as_strategy())
    def probe_inside(case: Any) -> None:
        """The same with a session and a test that exist, so that more than the first check is reached."""
        for part in (case.query, case.body):
            if isinstance(part, dict):
                part.update({key: known for key, known in inside.items() if key in part})
        case.call_and_validate(excluded_checks=REFUSED)

    inside = {"session_id": session, "test_id": TEST}
    probe()
    if (path, method) not in (("/session", "DELETE"), ("/test", "DELETE")):
        probe_inside()


def test_the_server_lives_on(served: tuple[str, str], tmp_path: Path) -> None:
    with RestClient(served[0]) as client:
        assert client.test_ids("OND", "image_classification") == [TEST, OTHER]
