"""`openfield run` and `openfield resume`: flags, experiment files, resuming, failing agents."""

from __future__ import annotations

import inspect
import io
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import openfield as of
from openfield.domain import Domain
from openfield.errors import Cancelled
from openfield.files.data import read_toml
from openfield.journal.reader import Run
from openfield.parameters import _Reader
from openfield.registry import CONTROLS, find_domain
from openfield.runner.plan import Plan
from support.places import MAZE, ROOT

SHORT = ("--workers", "0", "--set", "training=1", "--set", "before=1", "--set", "after=1")
SMALL = (*SHORT, "--trials", "2", "--set", "unchanged=0")
QUITTER = """
import pathlib, openfield as of
from openfield.errors import Cancelled

class Quitter:
    turns, may_leave = 0, True

    def __init__(self, spec, seed): ...

    def __call__(self, turn):
        self.turns += 1
        if self.turns == 9 and not pathlib.Path("quit").exists():
            pathlib.Path("quit").touch()
            raise Cancelled("enough")
        return of.Reply("left")
"""
FAILING = """
import openfield as of

class Failing:
    broken = {broken}

    def __init__(self, spec, seed): ...

    def __call__(self, turn):
        return 1 / 0 if self.broken else of.Reply("left")
"""


def outcomes(path: Path) -> list[str | None]:
    with Run(path) as run:
        return [cell.outcome for cell in run.cells()]


def test_run_records_and_prints(openfield: Any) -> None:
    said = openfield("run", MAZE, "--agent", "compass", "-a", "chance=random", *SMALL)
    assert said.status == 0
    assert "compass" in said.out
    assert "chance" in said.out
    assert said.out.endswith("Recorded in runs/maze.sqlite. See it: openfield report runs/maze.sqlite\n")
    assert outcomes(Path("runs/maze.sqlite")) == ["done"] * 4


def test_a_dry_run_prints_the_fingerprint_that_the_plan_keeps(openfield: Any, tmp_path: Path) -> None:
    words = (MAZE, "-a", "compass", *SMALL, "-o", "run.sqlite")
    said = openfield("run", *words, "--dry-run")
    plan = json.loads(openfield("run", *words, "--dry-run", "--json").out)
    assert (said.status, len(plan["cells"])) == (0, 2)
    assert said.out.endswith(f"2 cells. Nothing was played.\nPlan: {plan['plan']}\n")
    assert re.search(r"^Time: about \d+ (s|min) if agents answer at once$", said.out, re.MULTILINE)
    assert plan["estimates"] == {}
    assert plan["seconds"] > 0
    assert all(cell["cell"] in said.out for cell in plan["cells"])
    assert not (tmp_path / "run.sqlite").exists()
    assert json.loads(openfield("run", *words, "--json").out)["runs"][0]["plan"] == plan["plan"]
    more = json.loads(openfield("run", *words, "-a", "random", "--dry-run", "--json").out)
    assert more["plan"] != plan["plan"]
    assert json.loads(openfield("run", *words, "-a", "random", "--json").out)["runs"][0]["plan"] == more["plan"]
    assert "keeps no sealed seed" in openfield("run", MAZE, "-o", "sealed.sqlite", "--sealed", "--dry-run").err
    sealed = ("run", MAZE, "-o", "sealed.sqlite", "--secret", "seed", *SMALL, "--json")
    plan = json.loads(openfield(*sealed, "--dry-run").out)["plan"]
    assert json.loads(openfield(*sealed).out)["runs"][0]["plan"] == plan


MODEL = "small=llm:tiny(url=http://127.0.0.1:9/v1, price_in=2, price_out=4)"


def test_a_dry_run_says_what_a_model_would_cost(openfield: Any) -> None:
    words = ("run", MAZE, "-a", MODEL, *SMALL, "--dry-run")
    said = openfield(*words).out
    found = re.search(r"^small: about [\d,]+ calls and [\d,]+ tokens in 2 cells, which cost about 0\.\d\d$", said, re.M)
    assert found
    assert re.search(r"^Time: about \d+ (s|min) if a call takes 2 s$", said, re.M)
    plan = json.loads(openfield(*words, "--json").out)
    assert plan["seconds"] >= plan["estimates"]["small"]["calls"] * 2 > 0


@pytest.mark.parametrize(("answer", "asked"), [("n", True), ("", True), ("y", True), (None, False)])
def test_a_run_that_takes_many_tokens_asks_first_at_a_terminal(
    openfield: Any, monkeypatch: pytest.MonkeyPatch, answer: str | None, asked: bool
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return answer is not None

    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    played: list[Plan] = []
    monkeypatch.setattr("openfield.runner.run.run_plan", lambda plan, *rest: played.append(plan))
    said = openfield("run", MAZE, "-a", MODEL, *SMALL, "--ask-above", 10)
    assert ("These are more than 10 tokens (--ask-above). Start? [y/N]" in said.err) is asked
    assert bool(played) is (answer in ("y", None))
    assert ("Nothing was played." in said.err) is (answer in ("n", ""))


def test_run_plays_five_trials_that_change_and_two_that_do_not(openfield: Any) -> None:
    assert openfield("run", MAZE, "--agent", "compass", *SHORT).status == 0
    with Run("runs/maze.sqlite") as run:
        cells = run.cells()
    assert [cell.outcome for cell in cells] == ["done"] * 7
    assert sum(cell.trial.is_changed for cell in cells) == 5


def test_the_same_command_does_nothing_twice(openfield: Any) -> None:
    words = ("run", MAZE, *SMALL, "-o", "x.sqlite", "--json")
    first = openfield(*words)
    with Run("x.sqlite") as run:
        seconds = [cell.seconds for cell in run.cells()]
    assert openfield(*words).out == first.out
    with Run("x.sqlite") as run:
        assert [cell.seconds for cell in run.cells()] == seconds


@pytest.mark.parametrize("again", ["the same command", "resume"])
def test_a_stopped_run_goes_on(openfield: Any, tmp_path: Path, again: str) -> None:
    (tmp_path / "quitter.py").write_text(QUITTER)
    words = ("run", MAZE, "--agent", "quitter.py:Quitter", *SMALL, "-o", "x.sqlite")
    said = openfield(*words)
    assert said.status == 130
    assert "To go on: openfield resume x.sqlite" in said.err
    assert outcomes(Path("x.sqlite")) == ["cancelled", None]
    said = openfield(*words) if again == "the same command" else openfield("resume", "x.sqlite", "--workers", "0")
    assert said.status == 0
    assert outcomes(Path("x.sqlite")) == ["done", "done"]


def test_a_failing_agent_is_counted_and_tried_again_only_when_asked(openfield: Any, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING.format(broken=True))
    words = ("run", MAZE, "--agent", "failing.py:Failing", *SMALL, "-o", "x.sqlite")
    said = openfield(*words)
    assert said.status == 1  # no cell was played to its end: a script must notice
    assert "Not every cell was played to its end" in said.out
    assert (
        said.out.index("agent_error") < said.out.index("ZeroDivisionError") < said.out.index("Numbers are over trials")
    )
    (failure,) = json.loads(openfield("report", "x.sqlite", "--json").out)["failures"]
    assert (failure["outcome"], failure["agent"], failure["cells"]) == ("agent_error", "failing.py:Failing", 2)
    assert "the agent raised ZeroDivisionError" in failure["note"]
    assert "ZeroDivisionError" in openfield("show", "x.sqlite").out
    openfield(*words)
    with Run("x.sqlite") as run:
        assert {cell.attempt for cell in run.cells()} == {1}
    openfield("resume", "x.sqlite", "--retry", "--workers", "0")
    with Run("x.sqlite") as run:
        assert {cell.attempt for cell in run.cells()} == {2}


PRINTING = """
import openfield as of

def printing(turn):
    print("thinking about", turn.observation)
    return of.Reply("left")
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_agents_print_does_not_end_up_in_the_numbers(tmp_path: Path, workers: str) -> None:
    (tmp_path / "printing.py").write_text(PRINTING)
    words = [sys.executable, "-m", "openfield", "run", MAZE, "--agent", "printing.py:printing", "--trials", "1"]
    command = [*map(str, words), "--set", "after=1", "--workers", workers, "--json", "-o", "x.sqlite"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert json.loads(said.stdout)["groups"][0]["agent"] == "printing.py:printing"
    assert b"thinking about" in said.stderr


def test_a_run_killed_before_it_wrote_anything_starts_again(openfield: Any, tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").touch()
    assert openfield("run", MAZE, *SMALL, "-o", "x.sqlite").status == 0
    assert sorted(path.name for path in tmp_path.glob("x.sqlite*")) == ["x.sqlite"]


def test_several_novelties_repeats_and_the_red_light(openfield: Any) -> None:
    words = ("run", MAZE, *SMALL, "--novelty", "swapped", "--novelty", "slip:hard", "--repeats", "2")
    said = openfield(*words, "--given-detection", "-o", "x.sqlite", "--seed", "3")
    assert said.status == 0
    with Run("x.sqlite") as run:
        cells = run.cells()
    assert len(cells) == 8
    assert {cell.trial.novelty for cell in cells} == {("swapped",), ("slip:hard",)}
    assert all(cell.trial.red_light for cell in cells)
    assert {cell.repeat for cell in cells} == {0, 1}


def test_a_change_that_never_came_is_said(openfield: Any) -> None:
    words = ("run", "commai", "--set", "tasks=micro1", "--novelty", "alphabet:hard", "-a", "oracle", "--trials", "1")
    said = openfield(*words, "--set", "onset_instances=20", "--workers", "0", "-o", "x.sqlite")
    assert "In 1 of 2 cells the trial ended before the change came." in said.out
    assert "never came" not in openfield("run", MAZE, *SMALL, "-o", "y.sqlite").out


def test_a_limit_on_tokens_may_be_as_high_as_those_of_a_long_run(openfield: Any) -> None:
    words = ("run", MAZE, "--agent", "random", "--trials", "1", "-o", "x.sqlite", "--workers", "0")
    for command in (words, ("resume", "x.sqlite", "--workers", "0")):
        assert openfield(*command, "--run-token-limit", "100000000").status == 0


def test_json_of_run_and_resume_is_the_same(openfield: Any) -> None:
    first = json.loads(openfield("run", MAZE, *SMALL, "--json", "-o", "x.sqlite").out)
    assert first["groups"][0]["agent"] == "random"
    assert json.loads(openfield("resume", "x.sqlite", "--workers", "0", "--json").out) == first


def test_an_experiment_file_is_changed_by_flags_key_by_key(openfield: Any, tmp_path: Path) -> None:
    text = f'domain = "{MAZE}"\nagents = {{ns = "compass"}}\ntrials = 4\nworkers = 0\noutput = "x.sqlite"\n'
    (tmp_path / "e.toml").write_text(
        f"{text}[settings]\ntraining = 0\nbefore = 1\nafter = 1\n[limits]\nepisode_turns = 9\n"
    )
    said = openfield(
        "run", "e.toml", "--trials", "1", "--set", "after=2", "--set", "unchanged=0", "--reply-seconds", "5"
    )
    assert said.status == 0
    with Run("x.sqlite") as run:
        (cell,) = run.cells()
    assert cell.agent == "ns"
    assert cell.trial.settings == {"training": 0, "before": 1, "after": 2}
    assert (cell.trial.limits.reply_seconds, cell.trial.limits.episode_turns) == (5, 9)


def test_the_example_experiment_can_be_read(openfield: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    said = openfield("run", "examples/maze.toml", *SMALL, "--set", "onset=1", "-o", tmp_path / "x.sqlite")
    assert said.status == 0
    assert outcomes(tmp_path / "x.sqlite") == ["done"] * 12


def write_campaign(folder: Path) -> None:
    """Write an experiment file that names two domains."""
    (folder / "cellar.py").write_text(Path(MAZE).read_text().replace('= "maze",', '= "cellar",'))
    (folder / "both.toml").write_text(
        f"""
        trials = 2
        workers = 0
        settings = {{training = 1, before = 1, after = 1, unchanged = 0}}
        agents = ["random"]
        [[domains]]
        domain = "{MAZE}"
        agents = ["compass"]
        [[domains]]
        domain = "cellar.py"
        novelty = ["swapped", "slip"]
        """
    )


def test_a_campaign_goes_on_and_is_shared_out_like_any_run(openfield: Any, tmp_path: Path) -> None:
    write_campaign(tmp_path)
    planned = json.loads(openfield("run", "both.toml", "--dry-run", "--json").out)
    assert Counter((cell["domain"], cell["agent"]) for cell in planned["cells"]) == {
        ("maze", "compass"): 2,
        ("maze", "random"): 2,
        ("cellar", "random"): 4,
    }
    shares = [f"share-{number}.sqlite" for number in range(3)]
    for number, share in enumerate(shares):
        assert openfield("run", "both.toml", "--share", f"{number}/3", "-o", share).status == 0
    assert openfield("merge", *shares, "-o", "merged.sqlite").status == 0
    assert openfield("verify", "merged.sqlite", "--replay", "--plan", planned["plan"]).status == 0
    assert openfield("run", "both.toml", "--trials", "1").out.endswith("openfield report runs/both.sqlite\n")
    assert len(outcomes(Path("runs/both.sqlite"))) == 4
    assert openfield("resume", "runs/both.sqlite", "--workers", "0").status == 0
    assert "both.toml names 2 domains, and `openfield play` takes one" in openfield("play", "both.toml").err
    assert openfield("slurm", "both.toml", "--array", "2").out.startswith("runs/both.slurm/")


def test_an_agent_of_a_python_program_cannot_be_resumed_from_the_command_line(openfield: Any) -> None:
    import openfield as of

    class Leaving:
        may_leave = True

        def __init__(self, spec: of.Spec, seed: int) -> None: ...

        def __call__(self, turn: of.Turn) -> of.Reply:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        of.run({"mine": Leaving}, of.trials(MAZE, 1, training=0, before=1, after=1, unchanged=0), "x.sqlite")
    said = openfield("resume", "x.sqlite")
    assert said.status == 2
    assert "start its own program again to resume" in said.err


@pytest.mark.parametrize("name", ["[/x]", "[bold]y"])
def test_brackets_in_a_name_mean_nothing(narrow: Any, name: str) -> None:
    said = narrow("run", MAZE, "--agent", f"process:true {name}", "--agent", "random", *SMALL, "-o", "q.sqlite")
    assert said.status == 0
    assert "100 %" in said.err
    assert name in said.out


EDITED = "import openfield as of\nimport near\ndef left(turn):\n    return of.Reply('left')\n"


@pytest.mark.filterwarnings("always::openfield.runner.scheduler.RunWarning")
def test_an_edited_agent_is_played_again_unless_it_is_kept(openfield: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(EDITED)
    (tmp_path / "near.py").write_text("x = 1\n")
    words = ("run", MAZE, "--agent", "mine.py:left", *SMALL, "-o", "x.sqlite")
    assert "version" not in openfield(*words, "--note", "the first", "--tag", "base", "--tag", "v1").err
    (tmp_path / "near.py").write_text("x = 2\n")
    said = openfield(*words, "--keep")
    assert "openfield: An earlier version of mine.py:left played 2 cells (near.py changed)." in said.err
    assert "earlier in 2 of 2 cells" in said.out
    (group,) = json.loads(openfield("report", "x.sqlite", "--json").out)["groups"]
    assert group["versions"] == "earlier in 2 of 2 cells"
    assert "earlier in 2 of 2 cells" in openfield("report", "x.sqlite").out
    assert "earlier in 2 of 2 cells" in (tmp_path / "x.html").read_text()
    for extra in ((), ("--metric", "performance"), ("--intervals", "usual")):
        openfield("export", "x.sqlite", *extra, "-f", "jsonl")
        rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
        assert {row["agent_version"] for row in rows} == {
            "earlier in 2 of 2 cells" if "--intervals" in extra else "earlier"
        }
    said = openfield("resume", "x.sqlite", "--workers", "0")
    assert "They are played again; --keep keeps them." in said.err
    with Run("x.sqlite") as run:
        assert {(cell.outcome, cell.attempt) for cell in run.cells()} == {("done", 2)}
    first, *_ = told = json.loads(openfield("report", "x.sqlite", "--json").out)["provenance"]
    assert (len(told), first["note"], first["tags"]) == (3, "the first", ["base", "v1"])


def test_an_experiment_file_is_kept_with_the_run(openfield: Any, tmp_path: Path) -> None:
    text = f'domain = "{MAZE}"\nagents = ["random"]\ntrials = 1\noutput = "x.sqlite"\n'
    (tmp_path / "plan.toml").write_text(text)
    assert openfield("run", "plan.toml", "--workers", "0").status == 0
    assert openfield("show", "x.sqlite", "--source", "experiment").out == text


def test_controls_play_beside_the_agents(openfield: Any) -> None:
    said = openfield("run", MAZE, "--agent", "compass", "--controls", "--json", *SMALL)
    groups = {group["agent"]: group["control"] for group in json.loads(said.out)["groups"]}
    assert groups == {"compass": False} | dict.fromkeys(CONTROLS, True)
    assert next(iter(groups)) == "compass"
    assert json.loads(said.out)["comparisons"] == []


def test_a_control_gets_another_name_if_an_agent_has_its_own(openfield: Any) -> None:
    openfield("run", MAZE, "--agent", "sleeper=compass", "--controls", *SMALL)
    with Run("runs/maze.sqlite") as run:
        assert run.agents["sleeper"] == "compass"
        assert run.agents["control:sleeper"] == "control:sleeper"


def test_a_run_in_which_only_controls_were_scored_has_failed(openfield: Any) -> None:
    Path("bad.py").write_text(FAILING.format(broken=True))
    assert openfield("run", MAZE, "--agent", "bad.py:Failing", "--controls", *SMALL).status == 1
    assert openfield("run", MAZE, "--agent", "sleeper", "-o", "alone.sqlite", *SMALL).status == 0


def test_a_local_run_loads_neither_ray_nor_isolation_nor_metrics_of_other_domains(tmp_path: Path) -> None:
    command = ["run", MAZE, "--agent", "random", "--trials", "1", "--workers", "0", "-o", str(tmp_path / "run.sqlite")]
    code = f"import sys; from openfield.cli import run_command; run_command({command!r}); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = ran.stdout.splitlines()[-1].split()
    assert "openfield.metrics.performance" in loaded
    others = [f"openfield.metrics.{name}" for name in ("openset", "curricula", "characterisation", "programme", "sets")]
    unwanted = ("ray", "openfield.runner.ray", "openfield.runner.isolation", *others)
    assert [name for name in loaded for each in unwanted if name == each or name.startswith(f"{each}.")] == []


def test_every_option_of_a_run_is_also_a_key_of_its_file_and_an_option_of_python(openfield: Any) -> None:
    Path("e.toml").write_text(f'domain = "{MAZE}"\nnote = "from the file"\ntags = ["kept"]\nworkers = 0\ntrials = 1\n')
    assert openfield("run", "e.toml", *SHORT[2:], "--note", "from the words").status == 0
    (made,) = of.Result(["runs/maze.sqlite"]).provenance
    assert (made.note, made.tags) == ("from the words", ("kept",))
    trials = of.trials("maze", 1, training=1, before=1, after=1)
    (again,) = of.run("random", trials, "p.sqlite", note="from Python", tags=["kept"], budget="1h").provenance
    assert (again.note, again.tags) == ("from Python", ("kept",))


def count_calls(act: Callable[[], Any], *functions: Callable[..., Any]) -> list[int]:
    """Return how often each function is entered in this thread while something is done, from wherever."""
    calls = Counter[Any]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return [calls[inspect.unwrap(function).__code__] for function in functions]


def test_a_run_finds_its_domain_and_reads_its_agent_once(openfield: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import openfield as of\n\n"
        "class Mine:\n"
        "    def __init__(self, spec, seed, move): self.move = move\n"
        "    def __call__(self, turn): return of.Reply(self.move)\n"
    )
    agent = ("-a", "mine.py:Mine(move=left)")
    found = count_calls(
        lambda: openfield("run", MAZE, *agent, *SMALL), find_domain, _Reader.read_brackets, Domain.settings_in
    )
    phases, specs = 3, 1
    assert found == [1, 1, 2 * (phases + specs)]  # two cells
    (tmp_path / "maze.toml").write_text(f'domain = "{MAZE}"\ntrials = 1\nworkers = 0\noutput = "other.sqlite"\n')
    assert count_calls(lambda: openfield("run", "maze.toml", *agent), find_domain, read_toml) == [1, 1]
    trials = of.trials(MAZE, 1, unchanged=0, training=1, before=1, after=1)
    calls = count_calls(lambda: of.run(agent[1], trials, "third.sqlite"), find_domain, _Reader.read_brackets)
    assert calls == [1, 1]
