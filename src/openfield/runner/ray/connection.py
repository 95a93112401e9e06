"""Connect to a Ray cluster, or start one on this machine for as long as it is needed."""

from __future__ import annotations

import ipaddress
import logging
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from typing import Any

from openfield.errors import InvalidInput
from openfield.lazy import import_extra
from openfield.runner.cluster import Cluster

CONNECT_SECONDS = 10.0
OUTSIDE = ("192.0.2.1", 9)
"""An address that no machine has. Nothing is sent there: the system is asked which address it would send from."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_TQDM": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""No statistics of use are sent anywhere, and nothing is printed that is not about the run: by the last of these Ray
does not print its own lines about lost machines, whatever the settings of logs."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""On every system: this makes Ray listen on the loopback address alone, which `_node_ip_address` does not. Without it
Ray takes 127.0.0.1 for the address that other machines know this one by, and would look for the cluster there."""
IMPATIENT = {
    "RAY_gcs_rpc_server_connect_timeout_s": "2",
    "RAY_py_gcs_connect_timeout_s": "5",
    "RAY_NUM_REDIS_GET_RETRIES": "3",
}
"""About 30 seconds to connect. Otherwise Ray would try for a quarter of an hour where something else listens."""


REFUSAL_HINT = ". If the cluster wants a token, set RAY_AUTH_MODE=token."
"""Clusters of Ray want one unless configured otherwise, and Ray does not say that it is missing."""


class RayConnection:
    """A connection to a cluster. A cluster that was started for it is stopped when it is closed."""

    def __init__(self, cluster: Cluster) -> None:
        """Prepare for a cluster; `open` connects to it."""
        self._address = cluster.address
        self.ray: Any = None
        self.head = ""
        """Where the head of the cluster listens, as HOST:PORT, once it is connected."""
        self._folder, self._started = "", False

    @property
    def is_local(self) -> bool:
        """Whether the cluster was started here, so that no machine will join it."""
        return bool(self._folder)

    def open(self) -> None:
        """Connect to the cluster, or start one, unless this was done before, or by the program that called us.

        Raises:
            InvalidInput: It does not answer, or cannot be started.
        """
        if self.ray is not None:
            return
        address = self._address
        for name, value in _choose_settings(address).items():  # Ray reads them when it is imported
            os.environ.setdefault(name, value)
        self.ray = ray = import_extra("ray", "ray", "--executor ray")
        if not ray.is_initialized():
            self._start(ray, address)
        with suppress(Exception):  # a program that came by Ray's client knows no such address
            self.head = str(ray.get_runtime_context().gcs_address)

    def _start(self, ray: Any, address: str | None) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if address is not None:
                _try_connect(address)
                self._started = True
                ray.init(address=address, **quiet)
            else:
                self._folder = tempfile.mkdtemp(prefix="of-ray-")  # short: names of sockets have at most 107 characters
                self._started = True
                local = {"num_cpus": os.cpu_count(), "include_dashboard": False, "_temp_dir": self._folder}
                ray.init(address="local", **local, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = "could not be started here" if address is None else f"does not answer at {address}"
            hint = REFUSAL_HINT if self._started and address is not None else ""
            raise InvalidInput(f"Ray {where}: {str(error).splitlines()[0]:.300}{hint}") from None

    def answers(self) -> bool:
        """Return whether the head of the cluster takes connections; True if its address is not known."""
        return listens(self.head)

    def close(self) -> None:
        """Disconnect, and stop the cluster if it was started here."""
        if self._started:
            self.ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _choose_settings(address: str | None) -> dict[str, str]:
    if address is None:
        return QUIET | LOOPBACK
    return QUIET | IMPATIENT | (LOOPBACK if is_only_on_loopback(address) else {})


def is_only_on_loopback(address: str) -> bool:
    """Return whether an address is a loopback one, and nothing listens where other machines would look for it."""
    host, _, port = address.rpartition(":")
    try:
        if not ipaddress.ip_address(socket.gethostbyname(host)).is_loopback:
            return False
        _try_connect(f"{_find_own_address()}:{port}")
    except OSError:
        return True
    return False


def _find_own_address() -> str:
    """Return the address that other machines know this one by."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(OUTSIDE)
        return str(asked.getsockname()[0])


def listens(address: str) -> bool:
    """Return whether anything takes connections at HOST:PORT; True if that is not an address."""
    try:
        _try_connect(address)
    except OSError:
        return False
    return True


def _try_connect(address: str) -> None:
    """Try whether anything listens at HOST:PORT: Ray itself would try for two minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
