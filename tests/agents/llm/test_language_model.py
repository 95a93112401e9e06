"""A language model as an agent, against a local endpoint."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openfield as of
from openfield.agents.llm import model_endpoint as endpoints
from openfield.agents.llm.language_model import MAX_ANSWER, LanguageModel, PromptOptions, parse_answer, write_png
from openfield.agents.llm.model_endpoint import ModelAnswer, ModelQuestion, QuestionTooLong
from openfield.agents.turn_writer import BELIEF_QUESTION, TurnWriter, read_probability
from openfield.cli.results.show import show
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import AgentAway, AgentProtocol, Cancelled, InvalidInput
from openfield.journal.reader import CellRecord, Run
from openfield.provenance.usage import read_run_usage
from openfield.record import Step
from openfield.spaces import Discrete
from support.endpoint import Raw, Request, Responder, Stalled, Status, Streamed, last_message, obedient, reply, serving
from support.places import MAZE
from support.stories import story

pytest.importorskip("openai", reason="the extra llm is not installed")
SMALL = {"training": 1, "before": 1, "after": 1, "patience": 2, "unchanged": 0}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "_backoff", lambda failures: 0.001 * failures)


def small(count: int = 1, **settings: Any) -> list[of.Trial]:
    return of.trials(MAZE, count, **{**SMALL, **settings})


def run(
    path: Path, respond: Responder, parameters: str = "", trials: list[of.Trial] | None = None, **options: Any
) -> Any:
    with serving(respond) as endpoint:
        agent = {"model": f"llm:tiny(url={endpoint.url}{parameters})"}
        of.run(agent, trials or small(), path, **options)
    return endpoint


def only_cell(path: Path) -> tuple[CellRecord, list[Step]]:
    with Run(path) as opened:
        assert opened.verify() == []
        (cell,) = opened.cells()
        return cell, list(opened.steps(cell.id, cell.attempt))


class Scripted:
    """Answers with texts in turn, and keeps the questions."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.questions = list(answers), list[ModelQuestion]()

    def __call__(self, question: ModelQuestion) -> ModelAnswer:
        self.questions.append(question)
        return ModelAnswer(self.answers.pop(0), 100, 10, 0.5)


def talk(*answers: str, **prompt: Any) -> tuple[LanguageModel, Scripted]:
    model = Scripted(*answers)
    writer = TurnWriter(Spec(domain="d", task="Answer the cue.", actions=Discrete(2)))
    return LanguageModel(writer, model, PromptOptions(**prompt)), model


def test_a_model_plays_a_trial_and_all_of_it_is_on_record(tmp_path: Path) -> None:
    endpoint = run(
        tmp_path / "x.sqlite", obedient("up", 0.75), ", temperature=0, seed=7, price_in=1000, price_out=2000"
    )
    cell, steps = only_cell(tmp_path / "x.sqlite")
    assert cell.outcome == "done"
    assert [episode.belief for episode in cell.episodes] == [None, Belief(0.75), Belief(0.75)]  # none in training
    notes = [step.reply.note for step in steps if step.reply and step.reply.note]
    assert len(notes) == len(endpoint.requests) == 8  # two turns an episode, and two beliefs
    assert {key: notes[0][key] for key in ("calls", "tokens_in", "tokens_out")} == {
        "calls": 1,
        "tokens_in": 100,
        "tokens_out": 10,
    }
    assert notes[0]["cost"] == pytest.approx(0.12)
    assert [message["role"] for message in notes[0]["transcript"]] == ["system", "user", "assistant"]
    assert notes[0]["transcript"][-1]["thinking"] == "hm"
    assert [message["role"] for message in notes[1]["transcript"]] == ["user", "assistant"]
    first = endpoint.requests[0]
    assert (first["model"], first["temperature"], first["seed"]) == ("tiny", 0, 7)
    schema = first["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["action"]["enum"] == ["left", "right", "up", "down"]
    assert [len(request["messages"]) for request in endpoint.requests] == [2, 4, 6, 8, 10, 12, 14, 16]
    assert BELIEF_QUESTION in last_message(endpoint.requests[4])
    with Run(tmp_path / "x.sqlite") as opened:
        usage = read_run_usage(opened)["model"]
    assert (usage.calls, usage.tokens_in, usage.tokens_out) == (8, 800, 80)
    assert of.Result([tmp_path / "x.sqlite"] * 2).usage == {"model": usage}  # a cell that is in two files counts once
    assert usage.cost == pytest.approx(0.96)


def test_a_belief_is_asked_with_every_turn_on_request(tmp_path: Path) -> None:
    endpoint = run(tmp_path / "x.sqlite", obedient(), trials=small(ask="turn"))
    _, steps = only_cell(tmp_path / "x.sqlite")
    stated = [step.reply.belief is not None for step in steps if step.reply and step.reply.note]
    assert stated == [False, False, True, True, True, True, True, True]
    asked = ["world_changed" in last_message(request) for request in endpoint.requests]
    assert asked == stated


def test_history_is_a_window_and_notes_are_kept() -> None:
    answers = [reply(action=0, notes=f"note {number}") for number in range(5)]
    agent, model = talk(*answers, history=2, notes=True)
    for cue in range(5):
        agent(Turn(observation=cue))
    assert [len(question.messages) for question in model.questions] == [2, 4, 6, 6, 6]
    assert "Your notes: note 3" in model.questions[-1].messages[-1]["content"]
    assert "Observation: 2" in model.questions[-1].messages[1]["content"]
    assert model.questions[0].schema is not None
    assert "notes" in model.questions[0].schema["required"]
    agent, model = talk(reply(action=0), reply(action=0), history=0)
    agent(Turn(observation=1))
    agent(Turn(observation=2))
    assert [len(question.messages) for question in model.questions] == [2, 2]


def test_what_cannot_be_read_is_asked_again_once() -> None:
    agent, model = talk("I go up!", reply(action=1))
    answer = agent(Turn(observation=0))
    assert (answer.action, answer.note["calls"], answer.note["tokens_in"]) == (1, 2, 200)
    again = model.questions[1].messages[-1]["content"]
    assert again.startswith("Your answer could not be used: there is no JSON object with action in it.")
    agent, model = talk(reply(action=7), reply(action="1"))
    assert agent(Turn(observation=0)).action == 1
    again = model.questions[1].messages[-1]["content"]
    assert "7 is not an action here; it must be a whole number from 0 to 1" in again
    agent, _ = talk(reply(world_changed=2), reply(world_changed=0.5))
    assert agent(Turn(ask=Ask.BELIEF)).belief == Belief(0.5)


def test_a_second_answer_that_cannot_be_read_is_booked_as_what_it_is(tmp_path: Path) -> None:
    with serving(lambda _: "I do not know.") as endpoint:
        of.run({"model": f"llm:tiny(url={endpoint.url})"}, small(), tmp_path / "x.sqlite")
    cell, steps = only_cell(tmp_path / "x.sqlite")
    assert cell.outcome == "agent_protocol"
    assert cell.note == (
        "The model's answer cannot be read, and it was asked twice: there is no JSON object with action in it."
    )
    assert len(endpoint.requests) == 2
    assert steps[-1].reply is not None
    assert steps[-1].reply.note["tokens_in"] == 200  # which were paid for


def test_a_question_that_is_too_long_is_asked_with_less_history() -> None:
    lengths: list[int] = []

    def ask(question: ModelQuestion) -> ModelAnswer:
        lengths.append(len(question.messages))
        if len(question.messages) > 4:
            raise QuestionTooLong("too many tokens")
        return ModelAnswer(reply(action=0))

    agent = LanguageModel(TurnWriter(Spec(domain="d", task="t", actions=Discrete(2))), ask)
    for cue in range(4):
        agent(Turn(observation=cue))
    assert max(lengths[-2:]) <= 8
    assert lengths[-1] <= 4

    def refuse(question: ModelQuestion) -> ModelAnswer:
        raise QuestionTooLong("too many tokens")

    with pytest.raises(AgentProtocol, match="One turn is longer than the model can read"):
        LanguageModel(TurnWriter(Spec(domain="d", task="t", actions=Discrete(2))), refuse)(Turn())


def test_pictures_are_sent_with_the_turn_they_belong_to_only() -> None:
    agent, model = talk(reply(action=0), reply(action=0))
    picture = np.arange(4 * 6 * 3, dtype="uint8").reshape(4, 6, 3)
    note = agent(Turn(observation=picture)).note
    agent(Turn(observation=picture))
    kinds = [[part["type"] for part in model.questions[0].messages[-1]["content"]]]
    assert kinds == [["text", "image_url"]]
    assert isinstance(model.questions[1].messages[1]["content"], str)  # an earlier picture is only named
    assert "[1 pictures]" in note["transcript"][1]["content"]
    agent, model = talk(reply(action=0), images=False)
    agent(Turn(observation=picture))
    assert isinstance(model.questions[0].messages[-1]["content"], str)


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 1), (3, 5, 3), (3, 5, 4)])
def test_pictures_are_written_as_png(shape: tuple[int, ...]) -> None:
    import io

    from PIL import Image

    picture = np.random.default_rng(0).integers(0, 255, shape).astype("uint8")
    read = np.asarray(Image.open(io.BytesIO(write_png(picture))))
    assert (read == picture.reshape(read.shape)).all()


def test_a_resumed_model_is_asked_nothing_twice(tmp_path: Path) -> None:
    """A run that stops and goes on asks the same questions as one that does not, each once."""

    def counting(request: Request) -> str:
        asked = '"action"' in last_message(request).rpartition("Answer with")[2]
        number = len(request["messages"])
        return reply(**({"action": "up", "notes": f"{number}"} if asked else {"world_changed": 0.5, "notes": "b"}))

    whole = run(tmp_path / "whole.sqlite", counting, ", notes=true")
    left = [5]

    def stopping(request: Request) -> Any:
        left[0] -= 1
        return Status(503) if left[0] < 0 else counting(request)

    with serving(stopping) as endpoint:
        agent = {"model": f"llm:tiny(url={endpoint.url}, notes=true, retries=0)"}
        with pytest.raises(
            AgentAway, match=r"model: tiny at .* does not answer: status 503: .* Nothing is lost. To go on"
        ):
            of.run(agent, small(), tmp_path / "x.sqlite")
        cell, _ = only_cell(tmp_path / "x.sqlite")
        assert (cell.outcome, cell.attempt, len(endpoint.requests)) == ("cancelled", 1, 6)
        left[0] = 100
        of.run(agent, small(), tmp_path / "x.sqlite")
    cell, _ = only_cell(tmp_path / "x.sqlite")
    assert (cell.outcome, cell.attempt) == ("done", 1)
    asked = [request["messages"] for request in endpoint.requests]
    assert asked[:5] + asked[6:] == [request["messages"] for request in whole.requests]
    answered = [_without_times(kept) for kept in (story(tmp_path / "x.sqlite"), story(tmp_path / "whole.sqlite"))]
    assert answered[0] == answered[1]


def _without_times(told: dict[Any, Any]) -> list[Any]:
    ((outcome, episodes, steps),) = told.values()
    replies = [
        (one and one.action, one and one.belief, one and one.note and one.note["transcript"]) for one, *_ in steps
    ]
    return [outcome, episodes, replies, [step[1:] for step in steps]]


def test_a_limit_on_tokens_truncates_the_cell(tmp_path: Path) -> None:
    limited = of.trial.with_limits(small(), lambda limits: of.Limits(tokens=300))
    endpoint = run(tmp_path / "x.sqlite", obedient(), trials=limited)
    cell, _ = only_cell(tmp_path / "x.sqlite")
    assert (cell.outcome, cell.note) == ("truncated", "Cut off by a limit on the agent: tokens is 300.")
    assert len(endpoint.requests) == 3


def test_a_limit_on_the_tokens_of_a_run_leaves_cells_to_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with serving(obedient()) as endpoint:
        agent = {"model": f"llm:tiny(url={endpoint.url})"}
        with pytest.warns(UserWarning, match=r"The run has used 1,100 tokens, and 1,000 are allowed; some cells"):
            of.run(agent, small(3), path, run_token_limit=1_000)
        assert len(endpoint.requests) == 10
        with pytest.warns(UserWarning, match=r"The run has used 1,100 tokens, and 1,050 are allowed"):
            of.resume(path, run_token_limit=1_050)
        assert len(endpoint.requests) == 10
        of.resume(path)
    assert len(endpoint.requests) == 24
    with Run(path) as opened:
        assert [cell.outcome for cell in opened.cells()] == ["done"] * 3


def test_an_endpoint_that_only_streams_is_heard(tmp_path: Path) -> None:
    refused = Status(400, message="This model supports only stream=true.")

    def respond(request: Request) -> Any:
        return Streamed(str(obedient()(request))) if request.get("stream") else refused

    endpoint = run(tmp_path / "x.sqlite", respond, ", retries=0")
    cell, steps = only_cell(tmp_path / "x.sqlite")
    assert cell.outcome == "done"
    assert [bool(request.get("stream")) for request in endpoint.requests[:3]] == [False, True, True]
    assert "up" in {step.reply.action for step in steps if step.reply}


def test_an_answer_that_stalls_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "SECONDS", 0.5)
    answers = iter([Stalled(), Stalled()])
    with serving(lambda request: next(answers, None) or obedient()(request)) as endpoint:
        model = endpoints.ModelEndpoint("tiny", endpoint.url)
        question = ModelQuestion([{"role": "user", "content": 'Answer with "action"'}], None)
        answer = model.ask(question, 3, 1.0, lambda waited: None)
    assert "up" in answer.text
    assert len(answer.failures) == 2
    assert all("broke off" in each for each in answer.failures)


def test_broken_bodies_cost_retries_and_no_cells(tmp_path: Path) -> None:
    """One answer in five is no JSON."""
    counted = itertools.count()
    run(
        tmp_path / "x.sqlite",
        lambda request: Raw(b'{"choices": [{') if next(counted) % 5 == 0 else obedient()(request),
        trials=small(3),
    )
    with Run(tmp_path / "x.sqlite") as opened:
        assert [cell.outcome for cell in opened.cells()] == ["done"] * 3


def test_the_key_is_sent_and_never_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret-word")
    monkeypatch.setenv("OTHER_KEY", "other-secret-word")
    first = run(tmp_path / "x.sqlite", obedient())
    other = run(tmp_path / "y.sqlite", obedient(), ", key_env=OTHER_KEY")
    assert set(first.keys) == {"Bearer very-secret-word"}
    assert set(other.keys) == {"Bearer other-secret-word"}
    for path in tmp_path.iterdir():
        assert b"secret-word" not in path.read_bytes()
    with Run(tmp_path / "x.sqlite") as opened:
        for cell in opened.cells():
            assert "secret-word" not in json.dumps([str(step) for step in opened.steps(cell.id, 1)])


def test_an_endpoint_that_breaks_off_is_asked_again(tmp_path: Path) -> None:
    answers = iter([Raw(b'{"choices": [{', 500), Raw(b"<html>no</html>"), Raw(b"{}"), Status(500, message="oops")])
    endpoint = run(tmp_path / "x.sqlite", lambda request: next(answers, None) or obedient()(request), ", retries=5")
    cell, steps = only_cell(tmp_path / "x.sqlite")
    assert cell.outcome == "done"
    assert len(endpoint.requests) == 12
    assert steps[1].reply is not None
    failures = steps[1].reply.note["failures"]
    assert len(failures) == 4
    assert "it does not send JSON: '<html>no</html>'" in failures
    assert "oops" in failures[-1]


def test_an_endpoint_that_is_down_leaves_all_cells_resumable(tmp_path: Path) -> None:
    with serving(obedient()) as gone:
        pass
    for options in ({"workers": 0}, {"concurrency": 3}):
        path = tmp_path / f"{len(options)}{next(iter(options))}.sqlite"
        with pytest.raises(AgentAway, match=f"tiny at {gone.url} does not answer: Connection error"):
            of.run({"model": f"llm:tiny(url={gone.url}, retries=1)"}, small(3), path, **options)
        with Run(path) as opened:
            assert {cell.outcome for cell in opened.cells()} <= {None, "cancelled"}
            assert opened.verify() == []


def test_other_agents_play_on_while_one_is_away(tmp_path: Path) -> None:
    with serving(obedient()) as gone:
        pass
    agents = {"model": f"llm:tiny(url={gone.url}, retries=0)", "random": "random"}
    with pytest.raises(AgentAway, match="model: tiny at"):
        of.run(agents, small(3), tmp_path / "x.sqlite")
    with Run(tmp_path / "x.sqlite") as opened:
        outcomes = {(cell.agent, cell.outcome) for cell in opened.cells()}
    assert outcomes == {("random", "done"), ("model", "cancelled"), ("model", None)}


@pytest.mark.parametrize("code", [400, 401, 404])
def test_a_model_that_was_never_answered_for_is_away_and_not_at_fault(tmp_path: Path, code: int) -> None:
    with pytest.raises(AgentAway, match=f"does not answer: status {code}: .*no such"):
        run(tmp_path / "x.sqlite", lambda _: Status(code, message="no such"))


def test_a_question_that_is_refused_later_is_the_models_fault(tmp_path: Path) -> None:
    answers = iter([reply(action="up")])
    run(tmp_path / "x.sqlite", lambda _: next(answers, Status(400, message="against the rules")))
    cell, _ = only_cell(tmp_path / "x.sqlite")
    assert (cell.outcome, cell.steps) == ("agent_protocol", 2)
    assert "tiny refuses the question: status 400" in cell.note


def test_an_endpoint_without_schemas_is_asked_without(tmp_path: Path) -> None:
    def respond(request: Request) -> Any:
        plain = "response_format" not in request
        return obedient()(request) if plain else Status(400, message="response_format is not supported")

    endpoint = run(tmp_path / "x.sqlite", respond)
    assert only_cell(tmp_path / "x.sqlite")[0].outcome == "done"
    assert ["response_format" in request for request in endpoint.requests] == [True] + [False] * 8
    endpoint = run(tmp_path / "y.sqlite", respond, ", structured=false")
    assert not any("response_format" in request for request in endpoint.requests)


def test_tokens_are_estimated_where_the_endpoint_does_not_count(tmp_path: Path) -> None:
    with serving(obedient(), usage=False) as endpoint:
        of.run({"model": f"llm:tiny(url={endpoint.url})"}, small(), tmp_path / "x.sqlite")
    _, steps = only_cell(tmp_path / "x.sqlite")
    assert steps[1].reply is not None
    assert steps[1].reply.note["estimated"] is True
    assert 50 < steps[1].reply.note["tokens_in"] < 500


def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    agent, _ = talk()
    assert agent.may_leave
    with serving(lambda _: Status(429, {"Retry-After": "60"})) as endpoint:
        made = of.registry.find_agent(f"llm:tiny(url={endpoint.url})", of.registry.find_domain(MAZE))(
            Spec(domain="d", task="t"), 0
        )

        def stop(_: int) -> None:
            raise Cancelled("Stopped.")

        made.on_wait = stop  # type: ignore[attr-defined]
        with pytest.raises(Cancelled):
            made(Turn(observation=1))
    assert len(endpoint.requests) == 1


def test_replies_of_others_are_remembered_as_far_as_they_can_be() -> None:
    agent, _ = talk()
    with pytest.raises(AgentProtocol, match="the record of an answer is missing"):
        agent.remember(Turn(observation=1), Reply(1))
    agent.remember(Turn(ask=Ask.READY), Reply())


def test_a_rate_limit_told_to_one_cell_holds_for_all() -> None:
    answers = iter([Status(429, {"Retry-After": "0.5"})])
    told = threading.Event()
    with serving(lambda request: next(answers, None) or obedient()(request)) as endpoint:
        shared = endpoints.find_endpoint("tiny", endpoint.url, "OPENAI_API_KEY", None)
        question = ModelQuestion([{"role": "user", "content": "?"}], None)
        first = threading.Thread(target=shared.ask, args=(question, 0, 60.0, lambda _: told.set()))
        first.start()
        assert told.wait(60)
        held: list[int] = []
        assert shared.ask(question, 0, 60.0, held.append).text
        first.join()
    assert len(endpoint.requests) == 3
    assert min(endpoint.moments[1:]) >= endpoint.moments[0] + 0.5
    assert sum(held) > 0


@pytest.mark.sandbox
def test_isolated_runs_ask_models_from_outside_the_sandbox(tmp_path: Path) -> None:
    with serving(obedient()) as endpoint:
        agent = {"model": f"llm:tiny(url={endpoint.url})"}
        with pytest.raises(InvalidInput, match=r"^'llm:tiny' asks an endpoint, and .* no network\. Add --network\.$"):
            of.run(of.isolate(agent), small(), tmp_path / "x.sqlite")
        of.run(of.isolate(agent, network=True), small(), tmp_path / "x.sqlite")
    assert only_cell(tmp_path / "x.sqlite")[0].outcome == "done"
    with serving(obedient()) as gone:
        pass
    away = of.isolate({"model": f"llm:tiny(url={gone.url}, retries=0)"}, network=True)
    with pytest.raises(AgentAway, match="does not answer: Connection error"):  # which is no failure of the agent
        of.run(away, small(), tmp_path / "y.sqlite")


def test_waiting_for_an_endpoint_is_not_the_agents_time(tmp_path: Path) -> None:
    answers = iter([Status(429, {"Retry-After": "0.7"})])
    hurried = of.trial.with_limits(small(), lambda limits: of.Limits(reply_seconds=0.5))
    run(tmp_path / "x.sqlite", lambda request: next(answers, None) or obedient()(request), trials=hurried)
    cell, steps = only_cell(tmp_path / "x.sqlite")
    assert cell.outcome == "done"
    assert steps[1].took < 0.5e9


@pytest.mark.slow
def test_a_killed_run_pays_for_nothing_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The process is killed while the sixth question waits; the same command asks that one again, and no other."""
    path, asked = tmp_path / "x.sqlite", threading.Event()
    silent = [True]

    def respond(request: Request) -> Any:
        if silent[0] and len(endpoint.requests) == 6:
            asked.set()
            gate.wait()
        return obedient()(request)

    gate = threading.Event()
    with serving(respond) as endpoint:
        words = ["run", MAZE, "--agent", f"model=llm:tiny(url={endpoint.url})", "--trials", "1", "-o", str(path)]
        words += [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "openfield", *words, "--concurrency", "2"]
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert asked.wait(60)
        killed.kill()
        assert b"about 8 calls and " in killed.communicate()[1]
        silent[0] = False
        gate.set()
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(endpoint.requests) == 9  # the sixth one twice
    assert "tokens sent" in said.stdout
    assert re.search(r"model +8 +800 +80 ", said.stdout)
    assert only_cell(path)[0].outcome == "done"
    show(path, cell=only_cell(path)[0].id, transcript=True)
    shown = capsys.readouterr().out
    assert shown.count("assistant") == 8
    assert BELIEF_QUESTION in shown
    with pytest.raises(InvalidInput, match="--transcript needs --cell"):
        show(path, transcript=True)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"action": "up"}', {"action": "up"}),
        ('Sure!\n```json\n{"action": "up", "reasoning": "a {b} c"}\n```\nDone.', {"action": "up"}),
        ('<think>{"action": "down"}</think>{"action": "up"}', {"action": "up"}),
        ('{"action": "down"} no, rather {"action": "up"}', {"action": "up"}),
        ("{'action': 'up', 'world_changed': None}", {"action": "up", "world_changed": None}),
        ('{"Action ": "up",}', {"action": "up"}),
        ('{"action": [1, 2,], }', {"action": [1, 2]}),
        ('{"action": "two\nlines"}', {"action": "two\nlines"}),
        ('a { that is left open, then {"action": 3}', {"action": 3}),
        ('{"action": {"do": "shoot", "angle": 42}}', {"action": {"do": "shoot", "angle": 42}}),
        ('{"note": 1} {"action": "\\"}"} {"other": 2}', {"action": '"}'}),
    ],
)
def test_the_object_in_an_answer_is_found(text: str, values: dict[str, Any]) -> None:
    found = parse_answer(text, ["action"])
    assert {key: found[key] for key in values} == values


@pytest.mark.parametrize("text", ["", "up", "{", '{"other": 1}', "[1]", '"action"', "{action: up}", "{" * 9_999])
def test_an_answer_without_the_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="there is no JSON object with action or world_changed in it"):
        parse_answer(text, ["action", "world_changed"])


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    answer = f'{text}"action"{text}'
    with suppress(ValueError):
        assert "action" in parse_answer(answer, ["action"])
    assert parse_answer(answer.replace("{", "(") + '{"action": 1}', ["action"])["action"] == 1


def test_only_the_beginning_of_a_flood_is_read() -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        parse_answer("x" * MAX_ANSWER + '{"action": 1}', ["action"])


@pytest.mark.parametrize(
    ("value", "probability"), [(0, 0.0), (1, 1.0), (0.7, 0.7), ("0.7", 0.7), ("70%", 0.7), (" 5 % ", 0.05)]
)
def test_a_probability_is_read(value: Any, probability: float) -> None:
    assert read_probability(value) == pytest.approx(probability)


@pytest.mark.parametrize(
    "value", [True, None, "yes", -0.1, 1.1, "120%", [0.5], {}, float("nan"), 10**400, "1.2.3%", "١", "٥%", "0_1"]
)
def test_what_is_no_probability_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"world_changed is a number|could not convert"):
        read_probability(value)
