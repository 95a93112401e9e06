"""The wire of the Doom domains: protocol 0.8 over RabbitMQ, for `openfield serve` and for `wire:` agents.

`AmqpServer` does the serving. This module reads the options, and directs programs to the broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from openfield.cell import Cell
from openfield.domains.doom.engine import workdir
from openfield.domains.doom.wire import experiments, ini
from openfield.domains.doom.wire.private_broker import need_broker
from openfield.domains.doom.wire.server import PORT, AmqpServer, without_password
from openfield.errors import InvalidInput, UnknownName
from openfield.serving.wire import Dispatcher

CONFIG = "--config"
"""The option that gives programs of protocol 0.8 their configuration file."""
FINISHED_SECONDS = 0.05


class AmqpWire:
    """Serves protocol 0.8 through a broker."""

    port = PORT

    def __init__(
        self, amqp: str | None = None, config: str | None = None, lease: float | None = None, benchmark: bool = False
    ) -> None:
        """Take the options of `openfield serve`, see `DoomServeOptions`.

        Without an address, the broker is that of the configuration, else the host and port of `serve`.
        """
        if amqp is not None:
            ini.check_address(amqp)
        if lease is not None and not (lease > 0 and math.isfinite(lease)):
            raise InvalidInput(f"--lease must be a number of seconds above 0, not {lease:g}.")
        self.benchmark = benchmark
        self.config = ini.read_server(Path(config)) if config else None
        self.url = amqp or (self.config.amqp if self.config else None)
        self.secret: str | None = None
        """The secret of new experiments. It is drawn if None."""
        self.lease = lease or (self.config.normal_timeout_seconds if self.config else 1200.0)
        if self.config is not None:
            try:  # a wrong name is found now
                experiments.make_experiment_trials(msgspec.structs.replace(self.config, trials=1), 0)
            except (InvalidInput, UnknownName) as error:
                raise InvalidInput(f"{config}: {error}") from None

    @property
    def offer(self) -> str:
        """What every agent gets, and where."""
        config = self.config
        what = "the trials of this command"
        if config is not None:
            count, name = config.trials * len(list(experiments.list_groups(config))), experiments.domain_of(config).name
            what = f"training and {count} trials of {name} by its configuration"
        return f"every agent {what} through {without_password(self.url or '')}"

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled."""
        if self.url is None:
            self.url = f"amqp://guest:guest@{host}:{port}/" if port else await asyncio.to_thread(need_broker)
        self._server = AmqpServer(self, dispatcher, self.url)
        await self._server.run(ready)

    async def finished(self) -> None:
        """Wait until every agent knows that its experiment is over, or is gone."""
        while self._server.busy:
            await asyncio.sleep(FINISHED_SECONDS)

    def check_command(self, words: list[str]) -> None:
        """Refuse a program whose `--config` names no INI file."""
        config = _find_config(words)
        if config is not None:
            ini.read_ini(config[1])

    def command(self, words: list[str], cell: Cell) -> list[str]:
        """Return the command of a program with a copy of its configuration file that names our broker."""
        folder = Path(tempfile.mkdtemp(prefix="agent-", dir=workdir.process_folder()))  # removed with this process
        # programs save their trained model under this secret, which differs for all agents and repeats
        self.secret = hashlib.sha256((cell.after or cell.id).encode()).hexdigest()[:32]
        training = cell.trial.phases[0].name == "training"
        return redirect(self.url or "", words, folder, None if training else self.secret)


def redirect(url: str, words: list[str], folder: Path, secret: str | None) -> list[str]:
    """Replace the configuration file of a command by a copy in this folder that names our broker and the task.

    One trial of the experiment with this secret is played; None creates an experiment without tests.
    """
    config = _find_config(words)
    if config is None:
        return words
    number, source = config
    target = folder / source.name
    ini.write_client(source, target, _changes(url, secret))
    with contextlib.suppress(OSError):  # a program may keep its models there, and its test trials have another copy
        (source.parent / ini.MODELS).mkdir(exist_ok=True)
        (folder / ini.MODELS).symlink_to((source.parent / ini.MODELS).resolve())
    word = f"{CONFIG}={target}" if words[number].startswith(CONFIG) else str(target)
    return [*words[:number], word, *words[number + 1 :]]


def _find_config(words: list[str]) -> tuple[int, Path] | None:
    """Find the word of a command that names its configuration file, and the file; None if no word does."""
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
    """Return what changes in a client's file; programs join host, port and virtual host to an address again."""
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
