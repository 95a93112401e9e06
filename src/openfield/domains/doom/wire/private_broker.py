"""A private RabbitMQ with its own port, data and cookie, for tests and for `wire:` agents.

It needs Debian's `rabbitmq-server` on the machine, and does not touch the system's own broker.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from importlib.resources import files
from multiprocessing.util import Finalize
from pathlib import Path
from typing import IO

from openfield.domains.doom.wire.ini import check_address
from openfield.errors import InvalidInput
from openfield.files.data import read_data
from openfield.installation import find_program

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
START_SECONDS = 90.0
PORTS = range(20_000, 32_768)
"""Below those that systems give to outgoing connections, which might take a port while a broker starts or is away."""
INSTALL = "apt-get install rabbitmq-server"
DATA = files("openfield.domains.doom") / "data"


def has_broker() -> bool:
    """Check whether RabbitMQ is installed."""
    return find_program("rabbitmq-server", path=str(SCRIPTS)) is not None


@functools.cache
def own_broker() -> PrivateBroker:
    """Return this process's broker; start it when first asked, stop it when the process ends."""
    broker = PrivateBroker()
    Finalize(None, broker.close, exitpriority=10)  # worker processes end without `atexit`
    return broker


def need_broker() -> str:
    """Return the address of the broker in `OPENFIELD_AMQP`, or of a private one, which is started if needed."""
    named = os.environ.get("OPENFIELD_AMQP")
    if named:
        check_address(named)
    return named or own_broker().url


class PrivateBroker:
    """A running broker."""

    def __init__(self) -> None:
        if not has_broker():
            raise InvalidInput(f"There is no RabbitMQ on this machine. Install it: {INSTALL}")
        self.port, distribution, names = _free_ports(3)
        self._home = Path(tempfile.mkdtemp(prefix="openfield-rabbit-"))
        self._environment = _environment(self._home, distribution=distribution, names=names)
        for name in ("mnesia", "log"):
            (self._home / name).mkdir()
        (self._home / "enabled_plugins").write_text("[].\n")
        (self._home / "rabbitmq.conf").write_text((DATA / "broker.conf").read_text().format(port=self.port))
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self.url = f"amqp://field:field@127.0.0.1:{self.port}/"
        self.start()

    def start(self) -> None:
        """Start it and wait until it listens."""
        with (self._home / "out").open("ab") as log:
            self._process = self._spawn([str(SCRIPTS / "rabbitmq-server")], None, log)
        self._change_guard(str(self._process.pid))
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = (self._home / "out").read_text(errors="replace")[-500:]
                self.close()
                raise InvalidInput(f"RabbitMQ does not start: {tail}")
            time.sleep(0.2)

    def _change_guard(self, group: str = "") -> None:
        """Start another guard, and end the last one only then: one always watches the files on disk."""
        last, self._guard = self._guard, self._set_guard(group)
        if last is not None:
            last.kill()
            last.communicate()

    def _set_guard(self, group: str = "") -> subprocess.Popen[bytes]:
        """Start a shell that ends the broker with this process and, unlike a `Guard`, its name server and files."""
        words = [group, self._environment["ERL_EPMD_PORT"], str(self._home)]
        program = ["/bin/sh", "-c", (DATA / "broker_guard.sh").read_text(), *words]
        return self._spawn(program, subprocess.PIPE, subprocess.DEVNULL)

    def _spawn(self, words: list[str], source: int | None, output: int | IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603
            words, env=self._environment, stdin=source, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def stop(self) -> None:
        """End it at once; `start` brings it back with its durable queues."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            self._change_guard()

    def close(self) -> None:
        """End it and remove its files; its guard does so even if this process is ended meanwhile."""
        guard, self._guard = self._guard or self._set_guard(), None
        guard.communicate()
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        """Check whether it answers the first bytes of the protocol."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                connection.settimeout(5)
                return bool(connection.recv(1))
        except OSError:
            return False


def _free_ports(count: int) -> list[int]:
    drawn = random.SystemRandom().sample(PORTS, len(PORTS))  # an agent may have seeded the usual generator
    return list(itertools.islice(filter(_is_free, drawn), count))


def _is_free(port: int) -> bool:
    with socket.socket() as one, contextlib.suppress(OSError):
        one.bind(("127.0.0.1", port))
        return True
    return False


def _environment(home: Path, **ports: int) -> dict[str, str]:
    values = read_data("openfield.domains.doom", "broker.toml", dict[str, str])
    own = {name: value.format(home=home, **ports) for name, value in values.items()}
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **own}
