"""Protocol 0.8, the carrier: what `serve` and `wire:` are told of RabbitMQ, and how a program is led to it.

At the rim; `server` does the serving.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from openfield.cell import Cell
from openfield.domains.doom.engine import workdir
from openfield.domains.doom.wire import experiments, ini
from openfield.domains.doom.wire.private_broker import config_of, lead_to, need_broker
from openfield.domains.doom.wire.server import PORT, AmqpServer, without_password
from openfield.errors import InvalidInput, UnknownName
from openfield.serving.wire import Dispatcher

FINISHED_SECONDS = 0.05


class AmqpWire:
    """Serves protocol 0.8 through a broker."""

    port = PORT

    def __init__(
        self,
        amqp: str | None = None,
        config: str | None = None,
        lease: float | None = None,
        benchmark: bool = False,
    ) -> None:
        """Takes what `openfield serve` was told.

        Args:
            amqp: Where the broker is; else where the configuration says, else on the host and port of `serve`.
            config: A server's INI file; without it, agents get the trials of `serve`.
            lease: Seconds without a word after which an agent counts as gone and its trial is offered again.
            benchmark: Whether agents are asked for their machine's speed before the experiment starts.
        """
        if amqp is not None:
            ini.check_address(amqp)
        if lease is not None and not (lease > 0 and math.isfinite(lease)):
            raise InvalidInput(f"A lease of {lease:g} s is none; it must be more than 0, and end.")
        self.told = {"amqp": amqp, "config": config, "lease": lease, "benchmark": benchmark}
        self.benchmark = benchmark
        self.config = ini.read_server(Path(config)) if config else None
        self.url = amqp or (self.config.amqp if self.config else None)
        self.secret: str | None = None
        """The secret of new experiments, where it is not drawn."""
        self.lease = lease or (self.config.normal_timeout_seconds if self.config else 1200.0)
        if self.config is not None:
            try:  # a wrong name is found now
                experiments.make_experiment(msgspec.structs.replace(self.config, trials=1), 0)
            except (InvalidInput, UnknownName) as error:
                raise InvalidInput(f"{config}: {error}") from None

    @property
    def offer(self) -> str:
        """What every agent gets, and where."""
        config = self.config
        what = "the trials of this command"
        if config is not None:
            count, name = config.trials * len(list(experiments.groups_of(config))), experiments.domain_of(config).name
            what = f"training and {count} trials of {name} by its configuration"
        return f"every agent {what} through {without_password(self.url or '')}"

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serves until cancelled."""
        if self.url is None:
            self.url = f"amqp://guest:guest@{host}:{port}/" if port else await asyncio.to_thread(need_broker)
        self._server = AmqpServer(self, dispatcher, self.url)
        await self._server.run(ready)

    async def finished(self) -> None:
        """Returns when every agent was told that its experiment is over, or is given up."""
        while self._server.busy:
            await asyncio.sleep(FINISHED_SECONDS)

    def check_command(self, words: list[str]) -> None:
        """Refuses a program of the old family whose `--config` names no INI file."""
        config = config_of(words)
        if config is not None:
            ini.check_file(config[1])

    def command(self, words: list[str], cell: Cell) -> list[str]:
        """The words of a program of the old family, its `--config` replaced by a copy that leads to our broker."""
        folder = Path(
            tempfile.mkdtemp(prefix="agent-", dir=workdir.process_folder())
        )  # gone with this process, however it goes
        self.secret = model_secret(cell)
        training = cell.trial.phases[0].name == "training"
        return lead_to(self.url or "", words, folder, None if training else self.secret)


def model_secret(cell: Cell) -> str:
    """By what a program names the model it trains and finds it again: no two agents or repeats have the same."""
    return hashlib.sha256((cell.after or cell.id).encode()).hexdigest()[:32]
