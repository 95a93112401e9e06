"""A SLURM cluster of two pretended nodes on this machine: munged, slurmctld and two slurmd, in one folder."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from openfield.installation import find_program

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
PLACES = "/usr/sbin:/usr/local/sbin:/sbin"
CONFIG = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d-%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/d-%n.log
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=requeue_delay=0,sched_interval=1
MinJobAge=300
KillWait=5
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def find_missing() -> str:
    """Return why no cluster can be started here; nothing if one can."""
    missing = [name for name in PROGRAMS if find_program(name, path=f"{os.environ['PATH']}:{PLACES}") is None]
    if missing:
        return f"SLURM is not installed ({', '.join(missing)}); on Debian: slurm-wlm, munge"
    return "" if os.geteuid() == 0 else "only root can start a SLURM cluster"


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Start a cluster, and yield the environment in which its commands find it."""
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:{PLACES}", "SLURM_CONF": str(folder / "slurm.conf")}
    (folder / "state").mkdir(parents=True)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    (folder / "slurm.conf").write_text(CONFIG.format(folder=folder, ports=_free_ports(3)))
    names = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munge.pid", "log-file": "munge.log"}
    munged = ["munged", "-F", "-f", *(f"--{option}={folder / name}" for option, name in names.items())]
    daemons = [[*munged, f"--seed-file={folder / 'munge.seed'}"], ["slurmctld", "-D", "-i"]]
    daemons += [["slurmd", "-D", "-N", node] for node in ("n1", "n2")]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number, words in enumerate(daemons):
            log = (folder / f"daemon-{number}.log").open("wb")
            with log:
                running.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log, cwd=folder))
            if not number:
                _wait(lambda: (folder / "munge.sock").exists(), running[0])
        _wait(lambda: _count_idle(environment) == 2, running[1])
        yield environment
    finally:
        subprocess.run(["scancel", "--user=root"], env=environment, check=False, capture_output=True)
        for daemon in reversed(running):
            daemon.terminate()
            daemon.wait()


def wait_for_jobs(environment: dict[str, str]) -> None:
    """Wait until no job is queued or running.

    One that is queued again starts two seconds after its first run has ended, not two minutes: a machine refuses a job
    that was ended there within the same second.
    """
    hastened: set[str] = set()
    words = ["squeue", "-h", "-r", "-o", "%i %A %r"]
    while jobs := subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout.split("\n")[
        :-1
    ]:
        for job, number, reason in [line.split(maxsplit=2) for line in jobs]:
            if reason == "BeginTime" and job not in hastened and not _is_running(number):
                hastened.add(job)
                soon = ["scontrol", "update", f"JobId={job}", "StartTime=now+2"]
                subprocess.run(soon, env=environment, check=False, capture_output=True)
        time.sleep(0.2)  # SLURM has no way to be told


def _is_running(job: str) -> bool:
    """Return whether the process that looks after a run of a job is still there."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().startswith(f"slurmstepd: [{job}.".encode()):
                return True
    return False


def _wait(is_done: object, daemon: subprocess.Popen[bytes]) -> None:
    while not is_done():  # type: ignore[operator]
        assert daemon.poll() is None, f"{daemon.args} ended"
        time.sleep(0.1)


def _count_idle(environment: dict[str, str]) -> int:
    said = subprocess.run(
        ["sinfo", "-h", "-N", "-o", "%T"], env=environment, check=False, capture_output=True, text=True
    )
    return said.stdout.split().count("idle")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        with closing(each):
            pass
    return ports
