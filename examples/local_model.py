"""A language model at a local endpoint. The model is a program here, which reads and writes the words that one would.

Try it: python examples/local_model.py
"""

import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

from rich import print

import openfield as of

USUAL = {0: "turns left", 1: "turns right", 2: "goes forward"}
UNTRIED = range(7)
Place = tuple[int, int]
"""Where the goal is: squares ahead, and squares to the right."""


def find_goal(text: str) -> Place | None:
    """Return where the last view in a text shows the goal; None if it is not in sight."""
    found = re.search(r"goal (\d+) ahead(?:, (\d+) to the (left|right))?", text.rpartition("You see:")[2])
    return found and (int(found[1]), int(found[2] or 0) * (-1 if found[3] == "left" else 1))


def name_effect(before: Place, after: Place | None) -> str:
    """Say what an action did that moved the goal from one place to another."""
    ahead, side = before
    if after is None:
        return "goes forward" if before == (1, 0) else "turns left" if side > 0 else "turns right"
    moved = {before: "does nothing", (ahead - 1, side): "goes forward", (side, -ahead): "turns right"}
    return moved.get(after, "turns left")


def list_effects(messages: list[dict[str, Any]]) -> dict[int, str]:
    """Read in a conversation what each action did when it was last tried."""
    effects: dict[int, str] = {}
    asked = [(each["content"], after["content"]) for each, after in pairwise(messages) if each["role"] == "user"]
    for (question, answer), (result, _) in pairwise([*asked, (messages[-1]["content"], "")]):
        before, action = find_goal(question), json.loads(answer).get("action")
        if before is not None and action is not None and "A new episode" not in result:
            effects[action] = name_effect(before, find_goal(result))
    return effects


def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer the last question: walk to the goal, with what each action is known to do."""
    effects, goal = list_effects(messages), find_goal(messages[-1]["content"])
    odd = {action: effect for action, effect in effects.items() if effect != USUAL.get(action, "does nothing")}
    known = {**USUAL, **effects}
    wanted = "turns right" if goal is None or (not goal[0] and goal[1] > 0) else "turns left"
    wanted = "goes forward" if goal is not None and goal[0] else wanted
    fit = [action for action, effect in known.items() if effect == wanted]
    action = (fit or [each for each in UNTRIED if each not in effects] or [0])[0]
    strange = "; ".join(f"action {number} {effect}" for number, effect in odd.items())
    reason = f"Strange: {strange}. " if odd else ""
    reason += f"Action {action} {wanted}." if fit else f"I try action {action}."
    values = {"reasoning": reason, "action": action, "world_changed": 0.9 if odd else 0.1}
    asked = messages[-1]["content"].rpartition("Answer with")[2]
    return {key: value for key, value in values.items() if f'"{key}"' in asked}


class Handler(BaseHTTPRequestHandler):
    """Speaks the part of the OpenAI protocol that openfield needs."""

    def do_POST(self) -> None:
        """Answer a chat completion."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = json.dumps(answer(request["messages"]))
        told = sum(len(each["content"]) for each in request["messages"]) // 4
        usage = {"prompt_tokens": told, "completion_tokens": len(text) // 4, "total_tokens": told + len(text) // 4}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"]}
        body = json.dumps({**about, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Serve the endpoint on this machine, at a free port unless one is given, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


def make_trials(count: int) -> list[of.Trial]:
    """Make trials in which every action comes to mean the next one."""
    changes: dict[str, Any] = {"novelty": "actions-permuted", "before": 4, "after": 4, "onset": "2-6", "max_steps": 30}
    return of.trials("gym:MiniGrid-Empty-5x5-v0", count, **changes)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with serving(int(sys.argv[1])) as url:
            print(f"The endpoint is {url}. Enter stops it.")
            input()
    else:
        with serving() as url:
            os.environ["OPENAI_BASE_URL"] = url
            agents = {"model": "llm:walker", "random": "random"}
            result = of.run(agents, make_trials(2), "runs/local_model.sqlite", concurrency=8)
        used = result.usage["model"]
        print(result.table(), f"{used.calls} calls, {used.tokens_in} tokens sent, {used.tokens_out} written", sep="\n")
