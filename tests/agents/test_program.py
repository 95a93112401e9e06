from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from conftest import ROOT
from openfield.agents import program as program_module
from openfield.agents.program import process_agent
from openfield.core import Ask, Spec, Turn
from openfield.errors import AgentFault, AgentGone, AgentProtocol, AgentTimeout, Cancelled, InvalidInput
from openfield.journal.reader import Run
from openfield.trial import Limits
from support.stories import attempts, press_ctrl_c_after, story, wait_until
from support.worlds import tiny_trials

SPEC = Spec(domain="tiny", task="Answer.", actions=of.spaces.Discrete(2), reply_seconds=60.0)
HASTY = Spec(domain="tiny", task="Answer.", actions=of.spaces.Discrete(2), reply_seconds=0.5)
HELLO = r"""
import base64, json, os, sys, time
def say(**message): print(json.dumps(message), flush=True)
def hear(): return json.loads(sys.stdin.readline() or "null")
FLOOD = b'{"type": "reply"}\n' * 9
say(type="hello", saves=SAVES)
welcome = hear()
"""
LOOP = r"""
count = 0
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "turn" and message["ask"] != "none":
        count += 1
        say(type="reply", action=message["observation"]["cue"], belief={"novel": 0.5, "level": count})
    elif message["type"] == "save":
        say(type="state", state=base64.b64encode(str(count).encode()).decode())
    elif message["type"] == "load":
        count = int(base64.b64decode(message["state"]))
        say(type="loaded")
    elif message["type"] == "bye":
        break
"""


@pytest.fixture(autouse=True)
def _short_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "FAREWELL_SECONDS", 0.3)


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Writes a program and gives the command that starts it."""

    def write(code: str, saves: bool = False, head: str = HELLO) -> str:
        file = tmp_path / "program.py"
        file.write_text(head.replace("SAVES", str(saves)) + code)
        return f"{sys.executable} -S {file}"

    return write


def start(command: str, spec: Spec = SPEC) -> Any:
    return process_agent(command)(spec, 7)


def ask(agent: Any, turn: Turn | None = None) -> of.Reply:
    try:
        return agent(turn or Turn(observation={"cue": 1}))
    finally:
        agent.close()


def test_a_program_is_told_the_task_and_shown_every_field(program: Any) -> None:
    agent = start(program('say(type="reply", action=[welcome, hear()])'))
    welcome, turn = ask(agent, Turn(observation={"cue": 1}, phase="training", red_light=False)).action
    assert (welcome["protocol"], welcome["seed"], welcome["spec"]["task"]) == (1, 7, "Answer.")
    assert welcome["spec"]["actions"] == {"type": "discrete", "n": 2}
    assert turn == {
        "type": "turn",
        "ask": "act",
        "observation": {"cue": 1},
        "reward": 0.0,
        "feedback": None,
        "phase": "training",
        "first": False,
        "last": None,
        "red_light": False,
    }


def test_a_turn_that_asks_nothing_is_shown_and_not_waited_for(program: Any) -> None:
    agent = start(program('first = hear(); say(type="reply", action=[first, hear()])'))
    assert agent(Turn(ask=Ask.NONE, last="terminated", reward=1.0)) == of.Reply()
    ended, asked = ask(agent).action
    assert (ended["ask"], ended["last"], ended["reward"], asked["ask"]) == ("none", "terminated", 1.0, "act")


@pytest.mark.parametrize(
    ("code", "fault", "words"),
    [
        ("hear(); sys.exit('out of cheese')", AgentGone, "The program ended (status 1): out of cheese"),
        ("hear(); os.kill(os.getpid(), 9)", AgentGone, "The program ended (status -9)."),
        ("hear(); print('left', flush=True); time.sleep(60)", AgentProtocol, "not a message of the protocol: b'left'"),
        (
            "hear(); say(type='reply', action=1, belief=0.5); time.sleep(60)",
            AgentProtocol,
            "Expected `object | null`, got `float` - at `$.belief`",
        ),
        ("hear(); say(type='hello'); time.sleep(60)", AgentProtocol, "expected one reply, got hello"),
        ("hear(); say(type='dance'); time.sleep(60)", AgentProtocol, "Invalid value 'dance'"),
        (
            "hear(); os.write(1, FLOOD); time.sleep(60)",
            AgentProtocol,
            "expected one reply, got reply, reply, reply, reply and more",
        ),
        ("hear()\nwhile True: sys.stdout.write('x' * 65536)", AgentProtocol, "a line of more than 16 MB"),
    ],
)
def test_bad_programs_are_told_apart(program: Any, code: str, fault: type[AgentFault], words: str) -> None:
    agent = start(program(code))
    with pytest.raises(fault) as told:
        ask(agent)
    assert type(told.value) is fault
    assert words in str(told.value)


def test_a_program_that_keeps_silent_runs_out_of_time(program: Any) -> None:
    agent = start(program("hear(); time.sleep(60)"))
    agent._patience = 0.2  # once it is there: a slow machine takes its time to start it
    with pytest.raises(AgentTimeout, match=r"No message within 0\.2 s\."):
        ask(agent)


@pytest.mark.parametrize(
    ("head", "fault", "spec"),
    [
        ("import time; time.sleep(60)", AgentTimeout, HASTY),
        ("print('welcome!', flush=True); import time; time.sleep(60)", AgentProtocol, SPEC),
        ("raise SystemExit(4)", AgentGone, SPEC),
    ],
)
def test_a_program_must_introduce_itself(program: Any, head: str, fault: type[AgentFault], spec: Spec) -> None:
    with pytest.raises(fault):
        start(program("", head=head), spec)


def test_a_program_that_speaks_unasked_is_noticed(program: Any) -> None:
    agent = start(program("hear(); say(type='reply', action=1); say(type='reply', action=0); hear(); time.sleep(60)"))
    try:
        agent(Turn(observation={"cue": 1}))
    except AgentProtocol:
        agent.close()
        return  # both replies came at once
    wait_until(lambda: agent._inbox.select(0))
    with pytest.raises(AgentProtocol, match="got reply without having asked"):
        ask(agent)


def test_a_program_that_does_not_read_runs_out_of_time(program: Any) -> None:
    agent = start(program("time.sleep(60)"))
    agent._patience = 0.5
    with pytest.raises(AgentTimeout):
        ask(agent, Turn(observation="x" * 1_000_000))


def test_large_turns_and_replies_pass(program: Any) -> None:
    code = "message = hear(); say(type='reply', action=message['observation'])"
    noise = "x" * 3_000_000
    assert ask(start(program(code)), Turn(observation=noise)).action == noise


REMEMBERING = r"""
import json, random, sys
def say(**message): print(json.dumps(message), flush=True)
said = []
say(type="hello", saves=SAVES, remembers=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "turn" and message["ask"] != "none":
        said.append([message["observation"]["cue"], random.random()])
        say(type="reply", action=0, belief={"novel": said[-1][1], "detail": said})
    elif message["type"] == "remember" and message["turn"]["ask"] != "none":
        said.append([message["turn"]["observation"]["cue"], message["reply"]["belief"]["novel"]])
    elif message["type"] == "save":
        say(type="state", state="")
    elif message["type"] == "load":
        say(type="loaded")
"""


@pytest.mark.parametrize("saves", [False, True])
def test_a_program_that_remembers_is_told_its_past_and_asked_nothing_twice(
    program: Any, path: Path, saves: bool
) -> None:
    agents = {"mine": f"process:{program('', saves, REMEMBERING)}"}
    trials = tiny_trials(1, padding=2_000)
    with pytest.raises(Cancelled):
        of.run(agents, trials, path, watch=press_ctrl_c_after(2))
    of.run(agents, trials, path)
    assert attempts(path) == [(1, "done", "")]
    with Run(path) as run:
        (cell,) = run.cells()
        turns = list(run.steps(cell.id, 1))
    said = [step.reply.belief for step in turns if step.reply is not None and step.reply.belief is not None]
    assert len(said) == 8 * 6
    seen = said[-1].detail
    assert [novel for _, novel in seen] == [belief.novel for belief in said][-len(seen) :]
    assert saves or len(seen) == len(said)


def test_a_missing_program_and_an_empty_command_are_named() -> None:
    with pytest.raises(AgentGone, match="'no-such-program' cannot be started: No such file"):
        start("no-such-program --fast")
    with pytest.raises(InvalidInput, match="process: needs a command"):
        process_agent("  ")


def test_a_program_that_does_not_end_is_ended_with_its_children(program: Any, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"""
import subprocess
child = subprocess.Popen(["sleep", "600"])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
hear(); say(type="reply", action=1); time.sleep(600)
"""
    agent = start(program(code), Spec(domain="tiny", task="Answer."))
    ask(agent)
    for pid in map(int, pids.read_text().split()):
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists() or "Z" in state(pid))


def test_a_program_that_leaves_others_behind_is_gone_and_so_are_they(program: Any, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"""
import subprocess
child = subprocess.Popen(["sleep", "600"])
open({str(pids)!r}, "w").write(str(child.pid))
sys.exit(0)
"""
    agent = start(program(code))
    wait_until(lambda: agent._process.poll() is not None)
    agent._patience = 0.2  # what it left behind keeps its pipes open
    with pytest.raises(AgentGone, match="status 0"):
        ask(agent)
    wait_until(lambda: state(int(pids.read_text())) == "Z")


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


def test_outcomes_of_a_run(path: Path, program: Any, tmp_path: Path) -> None:
    command = program("hear(); say(type='reply', action=1); hear(); print('I give up', file=sys.stderr); sys.exit(2)")
    of.run({"quitter": f"process:{command}"}, tiny_trials(1), path)
    with Run(path) as run:
        (cell,) = run.cells()
    assert (cell.outcome, cell.note) == ("agent_gone", "The program ended (status 2): I give up")
    assert cell.steps == 2


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_silent_program_times_out(path: Path, program: Any, workers: int) -> None:
    command = program("hear(); time.sleep(600)")
    trials = tiny_trials(1, Limits(reply_seconds=1.0))
    of.run({"silent": f"process:{command}"}, trials, path, workers=workers)
    with Run(path) as run:
        (cell,) = run.cells()
    assert (cell.outcome, cell.steps) == ("agent_timeout", 1)


@pytest.mark.parametrize("saves", [False, True])
def test_a_stopped_run_goes_on_with_a_fresh_program(path: Path, program: Any, saves: bool) -> None:
    """With its saved state, or by being shown again what it had answered: the counts in its beliefs go on."""
    agents = {"counter": f"process:{program(LOOP, saves)}"}
    trials = tiny_trials(1)
    with pytest.raises(Cancelled):
        of.run(agents, trials, path, watch=press_ctrl_c_after(8))
    of.run(agents, trials, path)
    assert attempts(path) == [(1, "done", "")]
    with Run(path) as run:
        (cell,) = run.cells()
        assert [e.belief.level for e in cell.episodes if e.belief] == [6 * n for n in range(1, 9)]
        assert (run.state(cell.id, 1) is not None) is saves


def test_the_example_resumes_to_the_same_record(path: Path) -> None:
    agents = {"walker": f"process:{sys.executable} {ROOT / 'examples' / 'stdio_agent.py'}"}
    trials = of.trials(str(ROOT / "examples" / "maze.py"), 1, unchanged=0)
    with pytest.raises(Cancelled):
        of.run(agents, trials, path, watch=press_ctrl_c_after(20))
    of.run(agents, trials, path)
    whole = path.with_name("whole.sqlite")
    of.run(agents, trials, whole)
    assert story(path) == story(whole)
