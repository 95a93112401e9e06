"""`compose.yaml`: a broker and a server for people who prefer containers, held against what the protocol needs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from openfield.cli.shared.common import take_flags
from openfield.domains.doom import ARENA
from openfield.domains.doom.wire.amqp import PORT

yaml = pytest.importorskip("yaml", reason="pip install pyyaml")
pytest.importorskip("aio_pika", reason="pip install 'openfield[amqp]'")
SHARED_MEMORY = 1 << 30


@pytest.fixture
def services() -> dict[str, Any]:
    text = (Path(__file__).parents[3] / "compose.yaml").read_text()
    return dict(yaml.safe_load(text)["services"])


def test_images_are_named_without_a_host(services: dict[str, Any]) -> None:
    for service in services.values():
        name, colon, tag = service["image"].partition(":")
        assert "/" not in name
        assert colon
        assert tag


def test_the_broker_waits_for_slow_agents_and_is_met_where_they_expect_it(services: dict[str, Any]) -> None:
    broker = services["broker"]
    words = broker["environment"]["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"].split()
    assert words[:2] == ["-rabbit", "heartbeat"]
    assert int(words[2]) >= 600
    assert broker["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert services["doom"]["depends_on"]["broker"]["condition"] == "service_healthy"
    kind, program, _, check = broker["healthcheck"]["test"]
    assert (kind, program, check) == ("CMD", "rabbitmq-diagnostics", "check_port_connectivity")


def test_every_key_is_one_of_a_service(services: dict[str, Any]) -> None:
    """Those this file uses, with the kinds of values the Compose specification gives them."""
    kinds: dict[str, type | tuple[type, ...]] = {
        **dict.fromkeys(("image", "hostname", "working_dir", "command"), str),
        **dict.fromkeys(("ports", "volumes"), list),
        **dict.fromkeys(("environment", "healthcheck", "depends_on"), dict),
        **{"init": bool, "shm_size": (int, str)},
    }
    for service in services.values():
        assert service.keys() <= kinds.keys()
        assert all(isinstance(value, kinds[key]) for key, value in service.items())
        assert all(isinstance(value, str) for value in service.get("environment", {}).values())
        assert service.get("healthcheck", {}).keys() <= {"test", "interval", "timeout", "retries", "start_period"}


def test_the_server_is_started_as_the_command_line_has_it(services: dict[str, Any]) -> None:
    """Its words are those of `openfield serve`, and lead to the broker with the user the broker has."""
    doom, broker = services["doom"], services["broker"]
    shell, flag, script = shlex.split(doom["command"])
    install, _, start = script.partition(" && exec ")
    assert (shell, flag) == ("sh", "-c")
    assert shlex.split(install)[-1] == ".[doom,amqp]"
    program, verb, domain, *words = shlex.split(start)
    assert (program, verb, domain) == ("openfield", "serve", ARENA.name)
    launch = take_flags(ARENA, "serve", tuple(words))
    address = urlsplit(launch.wire.url)  # type: ignore[union-attr]
    assert (address.hostname, address.port) == ("broker", PORT)
    environment = broker["environment"]
    assert address.username == environment["RABBITMQ_DEFAULT_USER"] != "guest", "guests come from the same machine only"
    assert address.password == environment["RABBITMQ_DEFAULT_PASS"]


def test_there_is_room_for_engines(services: dict[str, Any]) -> None:
    """Containers have 64 MB of shared memory if nothing is said; each engine wants to be sure of 12."""
    assert services["doom"]["shm_size"] == SHARED_MEMORY
    assert services["doom"]["init"] is True
