"""What many tests share: the example maze, a place for a run file, and a Python program run as its own process."""

from __future__ import annotations

import compileall
import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import openfield as of
from openfield.registry import find_domain
from support.parts import is_quick, mark_item

ROOT = Path(__file__).parent.parent
Spawn = Callable[..., subprocess.Popen[bytes]]
SLOWNESS = HealthCheck.too_slow
"""How long an example takes says more of the machine than of us."""
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[SLOWNESS], max_examples=25)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """A shell has what it runs in the background ignore Ctrl-C, and all programs started from there inherit that."""
    if not hasattr(config, "workerinput"):  # hundreds of programs start here: the package is compiled once, not by each
        compileall.compile_dir(ROOT / "src", quiet=2, workers=2)
    elif config.args == ["tests"]:  # each worker begins with files of its own, and leaves them compiled to the others
        number, count = int(config.workerinput["workerid"][2:]), config.workerinput["workercount"]
        files = sorted(str(file) for file in Path("tests").rglob("test_*.py"))
        first = len(files) * number // count
        config.args = files[first:] + files[:first]
    os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / f"openfield-tests-{os.getuid()}")  # for the key
    os.environ["GIT_DIR"] = os.devnull  # every run asks for the revision of its folder, which takes 10 ms in a clone
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is read here stays to the end: it is not searched for garbage, neither meanwhile nor by any test.

    Tests are compiled with their asserts explained, which takes longer than all else here: that is kept.
    """
    sys.dont_write_bytecode = False
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        sys.dont_write_bytecode = sys.flags.dont_write_bytecode == 1


def pytest_unconfigure() -> None:
    """Libraries look at their end for what was not collected."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`, which `make test` uses."""
    parser.addoption(
        "--quick", action="store_true", help="leave out long forms and tests of real parts but smoke tests"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose and order the tests. Every worker must have the same order, in whichever it read the files.

    What is costly to start comes first, so that no worker is left alone with it at the end.
    """
    lacks: dict[str, str] = {}
    for item in items:
        mark_item(item, lacks)
    if config.getoption("quick"):
        config.hook.pytest_deselected(items=[item for item in items if not is_quick(item)])
        items[:] = [item for item in items if is_quick(item)]
    items.sort(key=lambda item: (item.get_closest_marker("xdist_group") is None, item.path))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each worker whole files, so that it sets up once what their tests share, and each part to one worker."""
    from xdist.scheduler import LoadGroupScheduling

    class FileScheduling(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return super()._split_scope(nodeid).split("::")[0]

    return FileScheduling(config, log)


@pytest.fixture
def maze() -> of.Domain[Any]:
    """The domain of examples/maze.py."""
    return find_domain(str(ROOT / "examples" / "maze.py"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a run file may be made."""
    return tmp_path / "run.sqlite"


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Starts Python programs that find the modules of these tests; none outlives its test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str | Path, **options: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        program = subprocess.Popen([sys.executable, *map(str, words)], env=environment, cwd=ROOT, **options)
        started.append(program)
        return program

    yield start
    for program in started:
        program.kill()
        program.wait()
        for pipe in (program.stdin, program.stdout, program.stderr):
            if pipe is not None:
                pipe.close()
