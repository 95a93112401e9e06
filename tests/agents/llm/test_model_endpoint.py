from __future__ import annotations

import os
from pathlib import Path

import pytest

from openfield.agents.llm.model_endpoint import MAX_HOLD, RequestGate, find_folder, join_stream


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "openfield"


def test_gates_of_one_name_share_their_limit() -> None:
    """Each opens the file anew, so two of them are to each other what two processes are."""
    one, other, stranger = RequestGate("a", 60.0), RequestGate("a", 60.0), RequestGate("b", 60.0)
    assert one.enter() == 0.0
    assert 50 < other.enter() <= 60
    assert 50 < one.enter() <= 60
    assert stranger.enter() == 0.0


def test_a_gate_without_a_limit_is_closed_by_what_another_was_told(folder: Path) -> None:
    one, other = RequestGate("a"), RequestGate("a")
    assert one.enter() == other.enter() == 0.0
    assert not list(folder.iterdir())  # nothing to share
    one.hold(60.0)
    one.hold(1.0)  # a shorter one does not open it
    assert 50 < other.enter() <= 60


@pytest.mark.parametrize("data", [b"", b"12", b"\xff" * 8, b"\x00" * 6 + b"\xf0\x7f", b"\x00" * 6 + b"\xf8\xff"])
def test_a_file_that_says_something_else_holds_nobody_up(folder: Path, data: bytes) -> None:
    gate = RequestGate("a", 60.0)
    gate.hold(1e9)
    assert 0 < gate.enter() <= MAX_HOLD
    (file,) = folder.iterdir()
    file.write_bytes(data)
    assert gate.enter() == 0.0


def test_without_a_folder_of_ones_own_the_limit_holds_in_the_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    with pytest.raises(PermissionError, match="belongs to others"):
        find_folder()
    gate = RequestGate("a", 60.0)
    assert gate.enter() == 0.0
    assert gate.enter() > 0
    assert RequestGate("a", 60.0).enter() == 0.0
    assert not list(folder.iterdir())


def test_the_pieces_of_a_stream_are_one_answer() -> None:
    events = ['{"choices": [{"delta": {"content": "a", "reasoning_content": "so"}}]}', '{"choices": [{"delta": {}}]}']
    last = ['{"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}]}', '{"usage": {"prompt_tokens": 3}}']
    given = join_stream([": comment", "", *(f"data: {each}" for each in [*events, *last])])
    message = given.choices[0].message
    assert (message.content, message.reasoning_content, given.usage.prompt_tokens) == ("ab", "so", 3)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "its stream broke off"),
        (['data: {"choices": [{"delta": {"content": "a"}}]}'], "its stream broke off"),
        (['data: {"choices": [{', "data: [DONE]"], "its stream has a malformed event"),
        (["data: 3", "data: [DONE]"], "its stream has a malformed event"),
        (['data: {"choices": [{"delta": {"content": [1]}}]}', "data: [DONE]"], "its stream has a malformed event"),
        (['data: {"choices": 7}', "data: [DONE]"], "its stream has a malformed event"),
    ],
)
def test_a_broken_stream_can_be_asked_for_again(lines: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        join_stream(lines)
