"""Connect to a Ray cluster, or start one on this machine for as long as it is needed."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
from types import TracebackType
from typing import Any, Self

from openfield.errors import InvalidInput
from openfield.lazy import import_extra
from openfield.runner.cluster import Cluster

KNOCK_SECONDS = 10.0
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_TQDM": "0",
}
"""No statistics of use are sent anywhere, and nothing is printed that is not about the run."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""On every system: this makes Ray listen on the loopback address alone, which `_node_ip_address` does not."""


class RayConnection:
    """A connection to a cluster. What was started for it is stopped when it is closed."""

    def __init__(self, cluster: Cluster) -> None:
        """Import Ray, and connect with `open`."""
        self._address = cluster.address
        for name, value in (QUIET if cluster.address else QUIET | LOOPBACK).items():
            os.environ.setdefault(name, value)
        self.ray: Any = import_extra("ray", "ray", "--executor ray")
        self._folder, self._started = "", False

    @property
    def is_local(self) -> bool:
        """Whether the cluster was started here, so that no machine will join it."""
        return bool(self._folder)

    def open(self) -> None:
        """Connect to the cluster, or start one, unless the program that called us has done so.

        Raises:
            InvalidInput: It does not answer, or cannot be started.
        """
        ray, address = self.ray, self._address
        if ray.is_initialized():
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if address is not None:
                _knock(address)
                self._started = True
                ray.init(address=address, **quiet)
            else:
                self._folder = tempfile.mkdtemp(prefix="of-ray-")  # short: names of sockets have at most 107 characters
                self._started = True
                local = {"num_cpus": os.cpu_count(), "include_dashboard": False, "_temp_dir": self._folder}
                ray.init(address="local", **local, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = "could not be started here" if address is None else f"does not answer at {address}"
            raise InvalidInput(f"Ray {where}: {str(error).splitlines()[0]:.300}") from None

    def close(self) -> None:
        """Disconnect, and stop the cluster if it was started here."""
        if self._started:
            self.ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:  # Ctrl-C, too
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _knock(address: str) -> None:
    """Try whether anything listens at HOST:PORT: Ray itself would try for two minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
