"""The wheel and the source archive: what is in them, and what a base install from the wheel does, without a network."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from openfield import __version__
from openfield.cli import run_command
from openfield.installation import list_extras
from openfield.journal.reader import Run
from openfield.registry import find_domain
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan

ROOT = Path(__file__).parent.parent
WALK = Path(__file__).parent / "support/walk_commands.py"
TOP_FILES = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "constraints.txt", "pyproject.toml"}
BUILT_FILES = {"PKG-INFO", ".gitignore"}
"""What the builder adds to a source archive."""

WORKS = (
    "run maze.py -a compass -a my_agent.py:Walker --trials 2 --workers 0 -o runs/maze.sqlite",
    "run maze.py -a 'process:python stdio_agent.py' --trials 1 --workers 0 -o runs/program.sqlite",
    "run commai -a echo --trials 1 --workers 0 --set max_steps=500 -o runs/commai.sqlite",
    "run ond -a msp --trials 1 --workers 0 -o runs/ond.sqlite",
    "run birds --help",
    "run doom --help",
    "resume runs/maze.sqlite --workers 0",
    "report runs/maze.sqlite",
    "report runs/maze.sqlite --json",
    "compare compass my_agent.py:Walker --run runs/maze.sqlite",
    "plan maze.py --agents compass random --trials 3 --detect 0.2",
    "show runs/maze.sqlite",
    "watch runs/maze.sqlite --once",
    "verify runs/maze.sqlite --replay --trust",
    "export runs/maze.sqlite",
    "export runs/maze.sqlite -f jsonl",
    "export runs/maze.sqlite -f markdown",
    "export runs/maze.sqlite -f latex",
    "publish runs/maze.sqlite -o site",
    "merge runs/maze.sqlite runs/commai.sqlite -o runs/both.sqlite",
    "objectives runs/maze.sqlite",
    "objectives table.pkl",
    "objectives similarity table.pkl table.pkl",
    "score --id known.npz --far strange.npz",
    "detect numbers.csv --truth onsets.csv --training 20 --detector cusum",
    "list",
    "list agents",
    "list novelties",
    "list metrics",
    "list runs",
    "list settings birds",
    "list options doom",
    "doctor",
    "doctor --json",
    "check maze.py",
    "slurm maze.toml --array 2",
    "completion bash",
    "ond stream stream.npz",
    "ond visit here -a msp --trials 1",
)
NEEDS = {
    "demo doom": "doom",
    "run birds -a naive": "birds",
    "run doom -a reference": "doom",
    "run gym:CartPole-v1 -a random": "gym",
    "run gym:CartPole-v1 --help": "gym",
    "run gym:MiniGrid-Empty-8x8-v0 -a random": "minigrid",
    "run gym:ALE/Breakout-v5 -a random": "atari",
    "run gym:CrafterReward-v1 -a random": "crafter",
    "run maze.py -a llm:model": "llm",
    "run maze.py -a onnx:policy.onnx": "onnx",
    "run maze.py -a random+river:ADWIN": "drift",
    "run maze.py -a compass --executor ray -o runs/ray.sqlite": "ray",
    "run maze.py -a compass --view -o runs/viewed.sqlite": "view",
    "serve commai": "zmq",
    "serve ond": "ond",
    "serve birds": "birds",
    "serve doom": "doom",
    "play birds": "birds",
    "play people.toml": "view",
    "play maze.py --no-browser": "view",
    "view": "view",
    "show runs/drawn.sqlite --cell {cell} --film film.webp": "view",
    "export runs/maze.sqlite -f parquet": "data",
    "figure runs/maze.sqlite -o curves.pdf": "figures",
    "objectives frames episode.npz -o frames.pkl": "data",
    "objectives convert table.pkl copy.pkl": "data",
    "objectives study atari_study.toml": "gym",
    "check birds": "birds",
    "birds generate --pool levels --count 1": "birds",
    "list novelties gym:CartPole-v1": "gym",
    "ond visit http://127.0.0.1:9 -a msp": "ond",
}
"""Commands, and the extra that they name."""
REFUSED = {
    "play maze.py": (130, "Stopped; your trials are in runs/maze-played.sqlite. The same command goes on."),
    "birds import maze.py": (2, "maze.py"),
    "score ond": (2, "Give --results and --data"),
    "ond merge episode.npz -o all.npz": (2, "episode.npz"),
    "objectives frames clip.mp4 -o clip.pkl": (2, "[video]'"),
}
"""Commands that end early, as they do with everything installed, because there is nothing to read."""


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as file:
        held = set(file.namelist())
    notes = f"openfield-{__version__}.dist-info/"
    assert {name for name in held if not name.startswith(notes)} == {
        name.removeprefix("src/") for name in list_tracked("src/openfield")
    }
    assert f"{notes}licenses/LICENSE" in held


@pytest.mark.wheel
def test_archives_can_be_published_and_read(tmp_path: Path) -> None:
    wheel, source = build_wheel(tmp_path), Path(next(SdistBuilder(str(ROOT)).build(directory=str(tmp_path))))
    with tarfile.open(source) as file:
        held = {name.partition("/")[2] for name in file.getnames()}
    assert held == {*list_tracked("src/openfield", "docs", "examples"), *TOP_FILES, *BUILT_FILES}
    words = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", str(wheel), str(source)]
    checked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("PASSED") == 2


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with the wheel and what every installation has, and return its folder of programs."""
    folder = tmp_path_factory.mktemp("base")
    wheel, place = build_wheel(folder), folder / "venv"
    venv.create(place, with_pip=False)
    python = place / "bin/python"
    words = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*words, "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (notes,) = packages.glob("openfield-*.dist-info")
    for name in list_requirements(Distribution.at(notes)):
        link_package(name, packages)
    return place / "bin"


@pytest.mark.wheel
def test_every_command_of_a_base_install_works_or_names_its_extra(base: Path, tmp_path: Path) -> None:
    cell = fill_folder(tmp_path)
    expected: dict[tuple[str, ...], Any] = {
        tuple(shlex.split(line.format(cell=cell))): outcome
        for line, outcome in {**dict.fromkeys(WORKS, 0), **NEEDS, **REFUSED}.items()
    }
    answers = {tuple(answer["words"]): answer for answer in walk(base, tmp_path, list(expected))}
    assert [answer for words, answer in answers.items() if not ends_as(expected.get(words, 0), answer)] == []
    commands = {words[:-1] for words in answers if words[-1] == "--help" and words not in expected}
    tried = {words[:length] for words in (*expected, ("demo",), ("ond",)) for length in range(len(words) + 1)}
    assert commands <= tried, "each command is tried above"
    assert {*list_extras()} - {"amqp", "cuda", "fast", "inspect", "video", "window"} == {*NEEDS.values()}, (
        "the others are for Python"
    )
    listed = {line.split()[0]: "pip install" in line for line in answers["list",]["out"].splitlines()[1:]}
    assert listed == {"birds": True, "commai": False, "doom": True, "doom-arena": True, "ond": False}


def ends_as(outcome: Any, answer: dict[str, Any]) -> bool:
    """Return whether a command ended as expected: well, with an extra named, or with a status and a text."""
    error = answer["err"].rstrip().rpartition("\n")[2]
    match outcome:
        case str(extra):
            line = (
                rf"openfield: .+ needs an optional part of openfield\. Install it: .*pip install '.+\.whl\[{extra}\]'"
            )
            return answer["status"] == 2 and re.fullmatch(line, error) is not None
        case (status, text):
            return answer["status"] == status and text in error
    return bool(answer["status"] == 0)


@pytest.mark.wheel
def test_the_demo_plays_in_a_base_install(base: Path, tmp_path: Path) -> None:
    words = [str(base / "openfield"), "demo", "--trials", "2"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "The page: runs/demo.html" in done.stdout
    assert (tmp_path / "runs/demo.html").exists()
    assert f"openfield-{__version__}-py3-none-any.whl[birds]'" in done.stdout
    advised = re.findall(r"^  \S*openfield (\w+) .*   ", done.stdout, re.MULTILINE)
    assert advised == ["run", "demo"], "what a base install has"
    assert "run commai" in done.stdout, "the first domain that is installed"
    assert done.stdout.endswith(f"{__version__}-py3-none-any.whl[view]'\n"), "play and view need this"


@pytest.mark.wheel
def test_a_base_install_serves_agents(base: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples/maze.py", tmp_path)
    words = [str(base / "openfield"), "serve", "maze.py", "--port", "0"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("Serving 7 trials of maze on 127.0.0.1:")
        server.send_signal(signal.SIGINT)
        assert "Traceback" not in server.communicate()[1]


def build_wheel(folder: Path) -> Path:
    """Build the wheel with the tool that pip would build it with, without a network."""
    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


def list_tracked(*places: str) -> set[str]:
    """Return the files of places that git tracks or would track."""
    words = [
        "git",
        f"--git-dir={ROOT / '.git'}",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *places,
    ]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in listed if (ROOT / name).exists()}


def list_requirements(package: Distribution) -> set[str]:
    """Return the names of all packages that one needs without extras, and that these need."""
    wanted = [Requirement(line) for line in package.requires or ()]
    names = {each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})}
    return names.union(*(list_requirements(distribution(name)) for name in names))


def link_package(name: str, folder: Path) -> None:
    """Link what a package of this environment has installed into the folder of another one."""
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
        if not (folder / top).exists():
            (folder / top).symlink_to(Path(str(found.locate_file(top))))


def fill_folder(folder: Path) -> str:
    """Write what the commands read, a run of a domain that draws included, and return the id of one of its cells."""
    for name in ("maze.py", "my_agent.py", "stdio_agent.py", "maze.toml", "people.toml", "atari_study.toml"):
        shutil.copy(ROOT / "examples" / name, folder)
    rng = np.random.default_rng(0)
    frames, logits = rng.integers(0, 255, (50, 8, 8), dtype=np.uint8), rng.normal(size=(40, 4))
    np.savez(folder / "episode.npz", observ=frames, action=rng.integers(0, 3, 50))
    (folder / "clip.mp4").touch()
    np.save(folder / "clip.npy", np.zeros(1, np.int64))
    np.savez(folder / "known.npz", logits=logits, features=logits, labels=rng.integers(0, 4, 40))
    np.savez(folder / "strange.npz", logits=logits, features=logits)
    (folder / "numbers.csv").write_text("\n".join(map(str, rng.normal(size=60).tolist())))
    (folder / "onsets.csv").write_text("onset\n40\n")
    stream = {"pred": rng.integers(0, 4, 400), "conf": rng.random(400), "label": rng.integers(-1, 4, 400)}
    np.savez(folder / "stream.npz", **stream)
    table = [str(folder / "episode.npz"), "-o", str(folder / "table.pkl")]
    assert run_command(["objectives", "frames", *table]) == 0
    path = folder / "runs/drawn.sqlite"
    run_plan(make_plan(["msp"], find_domain("ond").trials(1)[:1]), path)
    with Run(path) as run:
        return run.cells()[0].id


def walk(base: Path, folder: Path, commands: list[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Run commands in one process of the environment, the help of all commands first, and return what came of each."""
    (folder / "orders.json").write_text(json.dumps(commands))
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "COLUMNS": "400"}
    words = [str(base / "python"), "-I", str(WALK), "orders.json", "answers.json"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads((folder / "answers.json").read_text())
    return answers
