"""Environments of other packages: batches, arrays of JAX, constructors with arguments, and changes without effect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.domains.gym.adapter import to_plain
from openfield.errors import InvalidInput, UnknownName
from openfield.gym import DomainEnv
from openfield.journal.reader import Run
from openfield.registry import domain_source, known_domain, use_recorded
from openfield.settings import read_plain

SHORT: dict[str, Any] = {"before": 1, "after": 1, "max_steps": 5, "unchanged": 0}


class Batch(gymnasium.Env[Any, Any]):
    """Steps environments in a batch, with a spec of its own, as EnvPool does."""

    observation_space: Any = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.Discrete(2)
    spec: Any = object()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros((1, 4), np.float32), {}


class SeedlessBatch(Batch):
    """The same, with the signature of EnvPool's and observations in parts."""

    observation_space: Any = gymnasium.spaces.Dict({"seen": Batch.observation_space})

    def reset(self, env_id: Any = None) -> Any:  # type: ignore[override]
        return {"seen": super().reset()[0]}, {}


class ForeignArray:
    """An array that is not NumPy's, as JAX has them."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._values

    def __float__(self) -> float:
        return float(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)


class Foreign(gymnasium.Env[Any, Any]):
    """Shows foreign arrays."""

    observation_space = gymnasium.spaces.Box(-10, 10, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return ForeignArray(self.np_random.random(2, np.float32)), {}

    def step(self, action: Any) -> Any:
        seen = ForeignArray(self.np_random.random(2, np.float32))
        return seen, ForeignArray(1.0), ForeignArray(False), ForeignArray(False), {}


def make_named(env_name: str, modifs: Any = (), **arguments: Any) -> Any:
    """Make an environment whose name must be given, and ignore what else is asked for."""
    return gymnasium.make(env_name, **arguments)


@pytest.mark.parametrize("kind", [Batch, SeedlessBatch])
def test_a_batch_of_environments_is_refused_in_a_line(kind: Any) -> None:
    with pytest.raises(InvalidInput, match=r"makes a batch of environments: .*\(1, 4\).*\(4,\)"):
        of.from_gymnasium(kind)


def test_arrays_of_other_packages_are_converted(tmp_path: Path) -> None:
    plain = to_plain({"a": ForeignArray([1.0, 2.0]), "b": (ForeignArray(3),)})
    assert isinstance(plain["a"], np.ndarray)
    assert plain["a"].tolist() == [1.0, 2.0]
    assert plain["b"] == [3]
    domain = of.from_gymnasium(Foreign)
    result = of.run("random", domain.trials(1, novelty="none", **SHORT), tmp_path / "run.sqlite", workers=0)
    assert [cell.outcome for cell in result.cells] == ["done"]


def test_an_argument_of_a_setting_reaches_the_first_construction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f"gym:{__file__}:make_named"
    settings = [word for name, value in SHORT.items() for word in ("--set", f"{name}={value}")]
    words = ["run", source, "-a", "random", "--trials", "1", "--workers", "0", *settings, "--novelty", "gravity=20"]
    assert run_command([*words, "-o", str(tmp_path / "a.sqlite")]) == 2
    advice = f"'env_name'. Give it, as in {__file__}:make_named(NAME=VALUE), or with --set make.NAME=VALUE.\n"
    assert capsys.readouterr().err.endswith(advice)
    named = [*words, "--set", "make.env_name=CartPole-v1", "-o", str(tmp_path / "b.sqlite")]
    assert run_command(named) == 0
    assert run_command(["verify", str(tmp_path / "b.sqlite")]) == 0


def test_an_argument_may_make_another_environment_with_its_title_and_novelties(tmp_path: Path) -> None:
    domain = of.from_gymnasium(make_named, env_name="CartPole-v1")
    (usual,) = domain.trials(1, **SHORT)
    assert usual.novelty == ("long-pole",)
    (other,) = domain.trials(1, novelty="long-pendulum", **{"make.env_name": "Pendulum-v1"}, **SHORT)
    assert domain.title == "Pendulum-v1 by test_doors.make_named, an environment of Gymnasium"
    with pytest.raises(UnknownName, match="long-pendulum"):
        domain.trials(1, novelty="long-pole", **{"make.env_name": "Pendulum-v1"})
    result = of.run("random", [other, usual], tmp_path / "run.sqlite", workers=0)
    assert [cell.outcome for cell in result.cells] == ["done", "done"]
    assert domain.trials(1, **SHORT) == [usual]
    assert "CartPole" in domain.title


def test_a_default_argument_that_names_no_environment_waits_for_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "named.py"
    file.write_text("import gymnasium\ndef make(env_name='Nowhere-v3'):\n    return gymnasium.make(env_name)\n")
    settings = [word for name, value in SHORT.items() for word in ("--set", f"{name}={value}")]
    words = ["run", f"gym:{file}:make", "-a", "random", "--trials", "1", "--workers", "0", *settings]
    assert run_command([*words, "-o", str(tmp_path / "a.sqlite")]) == 2
    told = capsys.readouterr().err
    assert "does not know: Environment `Nowhere` doesn't exist. Give another argument, as in " in told
    named = [*words, "--set", "make.env_name=Pendulum-v1", "-o", str(tmp_path / "b.sqlite")]
    assert run_command(named) == 0
    assert "Pendulum-v1 by named.make, an environment of Gymnasium" in capsys.readouterr().out


COUNTED = """
from pathlib import Path
import gymnasium

def make(env_name="CartPole-v1"):
    with Path(__file__).with_suffix(".log").open("a") as log:
        log.write(f"{env_name}\\n")
    return gymnasium.make(env_name)
"""


@pytest.fixture
def counted(tmp_path: Path) -> tuple[str, Callable[[], set[str]]]:
    """A function that notes what it makes, and which environments it was asked for since this was last asked."""
    file = tmp_path / f"counted_{tmp_path.name}.py"  # a module is loaded once, so each test has its own
    file.write_text(COUNTED)
    log = file.with_suffix(".log")

    def take() -> set[str]:
        made = set(log.read_text().split()) if log.exists() else set()
        log.unlink(missing_ok=True)
        return made

    return f"{file}:make", take


def write_settings(**settings: Any) -> list[str]:
    """Return settings as words of a command."""
    return [word for name, value in settings.items() for word in ("--set", f"{name.replace('__', '.')}={value}")]


PENDULUM = ("(env_name=Pendulum-v1)", {}), ("", {"make__env_name": "Pendulum-v1"})
"""Two ways to give the argument: in brackets, and as a setting."""


@pytest.mark.parametrize("command", ["list", "check"])
def test_an_argument_in_brackets_is_the_only_one_with_which_a_command_makes_an_environment(
    counted: tuple[str, Callable[[], set[str]]], command: str
) -> None:
    place, take = counted
    source = f"gym:{place}(env_name=Pendulum-v1)"
    words = {"list": ["list", "novelties", source], "check": ["check", source, "--novelty", "gravity:hard"]}
    assert run_command(words[command]) == 0
    assert take() == {"Pendulum-v1"}


@pytest.mark.parametrize(("brackets", "setting"), PENDULUM, ids=["brackets", "setting"])
def test_an_argument_is_the_only_one_with_which_a_run_makes_environments(
    tmp_path: Path, counted: tuple[str, Callable[[], set[str]]], brackets: str, setting: dict[str, str]
) -> None:
    (place, take), path = counted, tmp_path / "run.sqlite"
    words = ["run", f"gym:{place}{brackets}", "-a", "random", "--trials", "1", "--workers", "1", "-o", str(path)]
    for each in (
        [*words, *write_settings(**SHORT, **setting)],
        [*words, *write_settings(**SHORT, **setting), "--novelty", "g=20"],
        ["verify", str(path), "--replay"],
    ):
        assert run_command(each) == 0
        assert take() == {"Pendulum-v1"}
    with Run(path) as run:
        assert run.facts[f"domain gym-{Path(place).stem}.make-Pendulum-v1"] == f"gym:{place}(env_name=Pendulum-v1)"


def test_every_table_of_an_experiment_makes_the_environment_of_its_argument(
    tmp_path: Path, counted: tuple[str, Callable[[], set[str]]]
) -> None:
    (place, take), file, path = counted, tmp_path / "campaign.toml", tmp_path / "run.sqlite"
    shared = ", ".join(f"{name} = {value}" for name, value in SHORT.items())
    tables = ('"make.env_name" = "Pendulum-v1"', 'make = { env_name = "Acrobot-v1" }')
    file.write_text(
        f'agents = ["random"]\ntrials = 1\nworkers = 0\nsettings = {{ {shared} }}\n'
        + "".join(f'[[domains]]\ndomain = "gym:{place}"\nsettings = {{ {table} }}\n' for table in tables)
    )
    assert run_command(["slurm", str(file), "--array", "2"]) == 0
    assert take() == {"Pendulum-v1", "Acrobot-v1"}
    assert run_command(["run", str(file), "-o", str(path)]) == 0
    assert take() == {"Pendulum-v1", "Acrobot-v1"}
    names = {cell.trial.domain.partition(".")[2] for cell in of.Result([path]).cells}
    assert names == {"make-Pendulum-v1", "make-Acrobot-v1"}
    assert run_command(["run", str(file), *write_settings(make__env_name="MountainCar-v0"), "--dry-run"]) == 0
    assert take() == {"MountainCar-v0"}


def test_an_argument_among_settings_is_the_first_one_wherever_trials_are_made(
    tmp_path: Path, counted: tuple[str, Callable[[], set[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, take = counted
    monkeypatch.chdir(tmp_path)
    settings = {"make.env_name": "Pendulum-v1", **SHORT}
    made = of.trials(f"gym:{place}", 1, **settings)
    assert made == of.trials(f"gym:{place}(env_name=Pendulum-v1)", 1, **SHORT)
    assert made == of.trials(f"gym:{place}", 1, make={"env_name": "Pendulum-v1"}, **SHORT)
    DomainEnv(f"gym:{place}", settings=settings).close()
    words = ["-a", "one=random", "-a", "random", "--trials", "3", *write_settings(make__env_name="Pendulum-v1")]
    run_command(["plan", f"gym:{place}", *words, *write_settings(**SHORT)])
    assert take() == {"Pendulum-v1"}


def test_an_argument_of_an_id_leaves_its_source_as_it_is() -> None:
    (made,) = of.trials("gym:FrozenLake-v1", 1, unchanged=0, **{"make.map_name": "8x8"}, before=1, after=1)
    assert made.settings["make"]["map_name"] == "8x8"
    assert domain_source("gym-FrozenLake-v1") == "gym:FrozenLake-v1"


def test_an_argument_that_brackets_cannot_hold_is_kept_by_trials(tmp_path: Path) -> None:
    file = tmp_path / "maps.py"
    file.write_text("import gymnasium\ndef make(level=()):\n    return gymnasium.make('CartPole-v1')\n")
    nested: list[Any] = []
    for _ in range(30):
        nested = [nested]
    for level in (list(range(20_000)), nested):
        (made,) = of.trials(f"gym:{file}:make", 1, make={"level": level}, **SHORT)
        assert made.settings["make"] == {"level": level}


@pytest.mark.parametrize("place", ["gym:FrozenLake-v1", f"gym:{__name__}:SeedlessBatch"])
@pytest.mark.parametrize("value", [float("inf"), np.float64(0.5), Path("x"), {1: 2}])
def test_an_argument_that_no_trial_can_keep_is_refused(place: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match="must be finite numbers, text, lists or mappings, which a trial can keep"):
        of.trials(place, 1, make={"success_rate": value}, **SHORT)


def test_trials_of_an_argument_in_brackets_are_those_of_from_gymnasium(
    counted: tuple[str, Callable[[], set[str]]],
) -> None:
    place, take = counted
    made = of.trials(f"gym:{place}( env_name = 'Pendulum-v1' )", 1, **SHORT)
    own = of.from_gymnasium(place, env_name="Pendulum-v1")
    assert own.trials(1, **SHORT) == made
    assert take() == {"Pendulum-v1"}
    assert own.name == f"gym-{Path(place).stem}.make-Pendulum-v1"
    assert made[0].settings["make"] == {"env_name": "Pendulum-v1"}
    assert domain_source(own.name) == f"gym:{place}(env_name=Pendulum-v1)"


class HalfPaid(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays half of every reward."""

    def step(self, action: Any) -> Any:
        seen, reward, *rest = super().step(action)
        return seen, 0.5 * float(reward), *rest


def make_half_paid() -> Any:
    """Make what has the id of another environment."""
    return HalfPaid(gymnasium.make("CartPole-v1"))


def test_what_a_function_makes_is_not_taken_for_the_environment_with_its_id(tmp_path: Path) -> None:
    domains = of.from_gymnasium("CartPole-v1"), of.from_gymnasium(make_half_paid)
    names = [domain.name for domain in domains]
    assert names == ["gym-CartPole-v1", "gym-test_doors.make_half_paid-CartPole-v1"]
    sets = [domain.trials(1, **SHORT) for domain in domains]
    result = of.run("random", [trial for made in sets for trial in made], tmp_path / "run.sqlite", workers=0)
    returns = [[episode.detail["return"] for episode in cell.episodes] for cell in result.cells]
    assert returns == [[5.0, 5.0], [2.5, 2.5]]


@pytest.mark.parametrize("workers", [0, 1])
def test_runs_of_the_time_when_both_had_one_name_go_on(
    tmp_path: Path, counted: tuple[str, Callable[[], set[str]]], workers: int
) -> None:
    source, path = f"gym:{counted[0]}(env_name=Pendulum-v1)", tmp_path / "run.sqlite"
    former = use_recorded(source, "gym-Pendulum-v1")
    first, second = former.trials(2, **SHORT)
    of.run("random", [first], path)
    of.from_gymnasium("Pendulum-v1")
    assert known_domain("gym-Pendulum-v1").title == "Pendulum-v1, an environment of Gymnasium"
    use_recorded(source, "gym-Pendulum-v1")
    of.run("random", [first, second], path, workers=workers)
    again = ["run", source, "--trials-of", str(path), "-a", "random", "-o", "again.sqlite"]
    for words in (["verify", str(path), "--replay"], ["resume", str(path)], ["report", str(path)], again):
        command = [sys.executable, "-m", "openfield", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
    with Run(path) as run:
        assert [(cell.trial.domain, cell.outcome) for cell in run.cells()] == [("gym-Pendulum-v1", "done")] * 2
        assert run.facts["domain gym-Pendulum-v1"] == source


def test_a_function_without_a_name_is_not_found_where_another_environment_of_its_name_is(tmp_path: Path) -> None:
    """Other processes, and whoever resumes the run, would play that one."""
    of.trials("gym:CartPole-v1", 1, **SHORT)
    assert domain_source("gym-CartPole-v1") == "gym:CartPole-v1"
    trials = of.from_gymnasium(lambda: gymnasium.make("CartPole-v1")).trials(1, **SHORT)
    of.run("random", trials, tmp_path / "run.sqlite", workers=0)
    with Run(tmp_path / "run.sqlite") as run:
        assert not [key for key in run.facts if key.startswith("domain ")]


@pytest.mark.parametrize("from_setting", [False, True])
def test_a_run_of_a_function_with_arguments_goes_on_in_another_process(
    tmp_path: Path, counted: tuple[str, Callable[[], set[str]]], from_setting: bool
) -> None:
    (place, take), path = counted, tmp_path / "run.sqlite"
    if from_setting:
        trials = of.trials(f"gym:{place}", 1, **{"make.env_name": "Pendulum-v1"}, **SHORT)
    else:
        trials = of.from_gymnasium(place, env_name="Pendulum-v1").trials(1, **SHORT)
    of.run("random", trials, path)
    assert take() == {"Pendulum-v1"}
    program = f"import openfield as of; print(of.resume({str(path)!r}).cells[0].outcome)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert take() == {"Pendulum-v1"}


@pytest.mark.parametrize(
    ("brackets", "message"),
    [
        ("env_nam=x", "unexpected keyword argument 'env_nam'"),
        ("env_name=", "a value is wanted at character"),
        ("env_name=Nowhere-v3", "does not know: Environment `Nowhere` doesn't exist"),
    ],
)
def test_an_argument_in_brackets_that_is_wrong_is_named_in_a_line(
    counted: tuple[str, Callable[[], set[str]]], capsys: pytest.CaptureFixture[str], brackets: str, message: str
) -> None:
    assert run_command(["run", f"gym:{counted[0]}({brackets})", "-a", "random"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("words", [["list", "novelties"], ["check", "--novelty", "gravity=20"]])
def test_an_environment_that_lacks_an_argument_is_named_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    file = tmp_path / "named.py"
    file.write_text("import gymnasium\ndef make(env_name):\n    return gymnasium.make(env_name)\n")
    assert run_command([*words, f"gym:{file}:make"]) == 2
    told = capsys.readouterr().err
    assert "'env_name'. Give it" in told
    assert told.count("\n") == 1


def test_a_novelty_without_effect_is_noticed_before_the_run() -> None:
    domain = of.from_gymnasium(make_named, env_name="CartPole-v1")
    with pytest.warns(UserWarning, match=r"'make\.modifs=\[stop_all_cars\]' changed nothing in 300 steps"):
        domain.trials(1, novelty="make.modifs=[stop_all_cars]", **SHORT)
    domain.trials(1, novelty="gravity=20", **SHORT)


def test_a_list_without_quotes_is_a_list() -> None:
    assert read_plain("[stop_all_cars, 3]") == ["stop_all_cars", 3]
    assert read_plain("[1,2]") == [1, 2]
    assert read_plain("stop") == "stop"
    assert read_plain('[{"a"') == '[{"a"'


@pytest.mark.parametrize(("novelty", "status"), [("gravity=20", 0), ("make.modifs=[stop_all_cars]", 2)])
def test_a_change_of_ones_own_can_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], novelty: str, status: int
) -> None:
    file = tmp_path / "named.py"
    file.write_text(
        "import gymnasium\ndef make(modifs=(), **arguments):\n    return gymnasium.make('CartPole-v1', **arguments)\n"
    )
    assert run_command(["check", f"gym:{file}:make", "--novelty", novelty]) == status
    told = capsys.readouterr()
    assert (f"{novelty}" in told.out + told.err) or status == 0
