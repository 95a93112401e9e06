"""A RabbitMQ of our own: private port, data and cookie, for tests and for programs that are agents.

At the rim. It needs Debian's `rabbitmq-server` on the machine; nothing of the system's own broker is touched.
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
from multiprocessing.util import Finalize
from pathlib import Path
from urllib.parse import unquote, urlsplit

from openfield.domains.doom.wire.ini import check_address, write_client
from openfield.errors import InvalidInput

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
START_SECONDS = 90.0
PORTS = range(20_000, 32_768)
"""Below those that systems give to outgoing connections: one of them may be taken while a broker starts, or is away."""
CONFIG = "--config"
"""How programs of the old family are told their configuration file."""
MODELS = "model"
"""The folder in which they keep what they trained, in the current one or beside the configuration file."""
INSTALL = "apt-get install rabbitmq-server"
GUARD = """
read -r _
[ -z "$0" ] || kill -s KILL -- "-$0"
for _ in 1 2 3 4 5 6 7 8 9 10; do epmd -port "$1" -kill | grep -q Killed && break; sleep 0.2; done
rm -rf "$2" || rm -rf "$2"
"""
"""Told the broker's process group, if it runs, the port of its name server, and its folder."""


def is_installed() -> bool:
    """Whether there is a RabbitMQ to start."""
    return (SCRIPTS / "rabbitmq-server").exists()


@functools.cache
def own_broker() -> PrivateBroker:
    """This process's broker, started when first asked for and stopped at the end."""
    broker = PrivateBroker()
    Finalize(None, broker.close, exitpriority=10)  # worker processes leave without `atexit`
    return broker


def need_broker() -> str:
    """The broker the environment names, or one of our own, started if need be."""
    named = os.environ.get("OPENFIELD_AMQP")
    if named:
        check_address(named)
    return named or own_broker().url


class PrivateBroker:
    """A broker under way."""

    def __init__(self) -> None:
        if not is_installed():
            raise InvalidInput(f"There is no RabbitMQ on this machine. Install it: {INSTALL}")
        self.port, distribution, names = _free_ports(3)
        self._home = Path(tempfile.mkdtemp(prefix="openfield-rabbit-"))
        self._environment = _environment(self._home, distribution, names)
        _write_config(self._home, self.port)
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self.url = f"amqp://field:field@127.0.0.1:{self.port}/"
        self.start()

    def start(self) -> None:
        """Starts it and waits until it listens."""
        with (self._home / "out").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [str(SCRIPTS / "rabbitmq-server")],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._change_guard(str(self._process.pid))
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = (self._home / "out").read_text(errors="replace")[-500:]
                self.close()
                raise InvalidInput(f"RabbitMQ does not start: {tail}")
            time.sleep(0.2)

    def _change_guard(self, group: str = "") -> None:
        """Sets another guard, and only then lets the last one go: what is on disk always has one."""
        last, self._guard = self._guard, self._set_guard(group)
        if last is not None:
            last.kill()
            last.communicate()

    def _set_guard(self, group: str = "") -> subprocess.Popen[bytes]:
        """A shell that waits until this process lets go, or is gone, however it went, and then ends the broker."""
        words = [group, self._environment["ERL_EPMD_PORT"], str(self._home)]
        return subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", GUARD, *words],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self) -> None:
        """Ends it at once; `start` brings it back with its durable queues."""
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
        """Ends it and removes all it left; its guard does so even if this process is ended meanwhile."""
        guard, self._guard = self._guard or self._set_guard(), None
        guard.communicate()
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        """Whether it takes connections; it says so by the first bytes of the protocol."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                connection.settimeout(5)
                return bool(connection.recv(1))
        except OSError:
            return False


def lead_to(url: str, words: list[str], folder: Path, secret: str | None) -> list[str]:
    """A command whose `--config FILE` is replaced by a copy of that file with a broker and a task in it.

    Args:
        url: Where the broker is.
        words: The command.
        folder: Where the copy goes.
        secret: Of the experiment of which one trial is to be played; None if one is to be created and not tested.
    """
    config = config_of(words)
    if config is None:
        return words
    place, source = config
    target = folder / source.name
    write_client(source, target, _changes(url, secret))
    with contextlib.suppress(OSError):  # a program may keep its models there, and its test trials have another copy
        (source.parent / MODELS).mkdir(exist_ok=True)
        (folder / MODELS).symlink_to((source.parent / MODELS).resolve())
    word = f"{CONFIG}={target}" if words[place].startswith(CONFIG) else str(target)
    return [*words[:place], word, *words[place + 1 :]]


def config_of(words: list[str]) -> tuple[int, Path] | None:
    """Which word of a command says what its configuration file is, and that file; None if none does.

    Raises:
        InvalidInput: It says that there is one, and not which.
    """
    for number, word in enumerate(words):
        option, sign, path = word.partition("=")
        if option == CONFIG:
            place = number if sign else number + 1
            named = path if sign else "".join(words[place : place + 1])
            if not named:
                raise InvalidInput(f"'{' '.join(words)}' does not say which file: {CONFIG}=FILE.")
            return place, Path(named)
    return None


def _changes(url: str, secret: str | None) -> dict[str, dict[str, str | None]]:
    """What is said in a client's file; programs join host, port and virtual host to an address again."""
    parts = urlsplit(url)
    secure, host = parts.scheme == "amqps", parts.hostname or "127.0.0.1"
    return {
        "amqp": {
            "user": unquote(parts.username or "guest"),
            "pass": unquote(parts.password or "guest"),
            "host": f"[{host}]" if ":" in host else host,
            "port": str(parts.port or (5671 if secure else 5672)),
            "vhost": "/" if unquote(parts.path) in ("", "//") else parts.path,
            "ssl": str(secure),
        },
        "sail-on": {
            "domain": "vizdoom",
            "experiment_secret": secret,
            "no_testing": str(secret is None),
            "just_one_trial": str(secret is not None),
        },
    }


def _free_ports(count: int) -> list[int]:
    drawn = random.SystemRandom().sample(PORTS, len(PORTS))  # whatever seed an agent has given to the usual generator
    return list(itertools.islice(filter(_is_free, drawn), count))


def _is_free(port: int) -> bool:
    with socket.socket() as one, contextlib.suppress(OSError):
        one.bind(("127.0.0.1", port))
        return True
    return False


def _environment(home: Path, distribution: int, names: int) -> dict[str, str]:
    cookie = f"-setcookie openfield{names}"
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "RABBITMQ_NODENAME": f"openfield{names}@localhost",
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": cookie,
        "RABBITMQ_CTL_ERL_ARGS": cookie,
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_RELAXED_COMMAND_CHECK": "1",  # else it cannot be ended while it remembers a broker that was killed
    }


def _write_config(home: Path, port: int) -> None:
    for name in ("mnesia", "log"):
        (home / name).mkdir()
    (home / "enabled_plugins").write_text("[].\n")
    lines = {
        "listeners.tcp.1": f"127.0.0.1:{port}",
        "loopback_users": "none",
        "default_user": "field",
        "default_pass": "field",
        "default_vhost": "/",
        "heartbeat": "600",
    }
    (home / "rabbitmq.conf").write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
