"""A turn: what the agent saw, answered, believed, noted and earned, and where to go on from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request

from openfield.journal.reader import RESUMABLE
from openfield.view.page import is_twin, library_of, page
from openfield.view.pages.trial import TRIAL, TrialHead, describe_trial, find_sides, read_number
from openfield.view.trials.conversation import MAX_SEEN, Message, leave_out, read_messages
from openfield.view.trials.timeline import LOW_HEIGHT, Timeline, draw_timeline
from openfield.view.trials.trial import PlayedTrial
from openfield.view.trials.turn import ShownTurn, TracePoint, read_turns, trace_episode
from openfield.view.trials.values import format_answer, format_value

MAX_TURNS = 128
"""Turns of one answer."""
MAX_ANSWER_BYTES = 2 << 20
"""Bytes of an answer after which no further turn is added."""


class TurnSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the agents on the page."""

    head: TrialHead
    timeline: Timeline | msgspec.UnsetType = msgspec.UNSET
    """Only for the page: it is a drawing, and the page of the trial has its numbers."""
    turn: ShownTurn
    first: int
    """The first turn of the episode."""
    turns: int
    """The number of turns of the episode."""


class TurnPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a turn."""

    sides: list[TurnSide]
    """The agent, and another one beside it if one was asked for: in the same episode, as far into it."""
    title: str

    @property
    def is_open(self) -> bool:
        """Whether one of them is still being played, so that turns are added."""
        return any(side.head.outcome in RESUMABLE for side in self.sides)

    @property
    def for_script(self) -> dict[str, Any]:
        """What the script of the page gets."""
        return {"sides": [msgspec.structs.replace(side, timeline=msgspec.UNSET) for side in self.sides]}


class EpisodePage(TurnPage, frozen=True, kw_only=True):
    """The page of an episode: that of its first turn, with the numbers of all its turns."""

    traces: list[list[TracePoint]]
    """For each agent and turn: what was earned, the belief, the performance, and milliseconds."""


class TurnList(msgspec.Struct, frozen=True, kw_only=True):
    """Some turns that follow each other: the transcript of a trial, part by part."""

    run: str
    run_name: str
    cell: str
    trial: str
    agent: str
    turns: list[ShownTurn]
    start: int
    next: int | None
    """The first turn of the next part."""
    count: int
    """The number of all turns."""
    letters: bool
    """Whether whole numbers that are seen or answered are letters."""

    @property
    def entries(self) -> Iterator[TranscriptEntry]:
        """The turns as text."""
        return write_transcript(self.turns, self.letters)

    @property
    def has_prose(self) -> bool:
        """Whether the agent wrote Markdown."""
        return any(message.prose for entry in self.entries for message in entry.messages)


def read_turn(request: Request) -> TurnPage:
    """Return what the page of a turn shows."""
    trial, *others = find_sides(request)
    number = trial.check_turn(request.path_params["turn"])
    episode = trial.episode_of(number)
    offset = number - trial.turns_of(episode).start
    sides = [_read_side(request, trial, episode, offset), *(_read_side(request, o, episode, offset) for o in others)]
    return TurnPage(sides=sides, title=f"episode {episode}, turn {offset}")


def read_episode(request: Request) -> EpisodePage:
    """Return what the page of an episode shows."""
    trials, episode = find_sides(request), request.path_params["episode"]
    trials[0].turns_of(episode)
    sides = [_read_side(request, each, episode, 0) for each in trials]
    with library_of(request).open(request.path_params["run"]) as run:
        traces = [trace_episode(run, each, _clamp(each, episode)) for each in trials]
    return EpisodePage(sides=sides, title=f"episode {episode}, turn 0", traces=traces)


def read_list(request: Request) -> TurnList:
    """Return some turns: `?from=N&count=M`."""
    trial = find_sides(request)[0]
    first = read_number(request, "from", 0)
    count = min(read_number(request, "count", 64), MAX_TURNS)
    turns: list[ShownTurn] = []
    size = 0
    with library_of(request).open(request.path_params["run"]) as run:
        while len(turns) < count and size < MAX_ANSWER_BYTES:
            more = read_turns(run, trial, first + len(turns), min(16, count - len(turns)))
            if not more:
                break
            turns += more
            size += len(msgspec.json.encode(more))
    following = first + len(turns)
    return TurnList(
        run=request.path_params["run"],
        run_name=trial.path.stem,
        cell=trial.cell.id,
        trial=trial.cell.trial.id,
        agent=trial.cell.agent,
        turns=turns,
        start=first,
        next=following if turns and following < trial.turns else None,
        count=trial.turns,
        letters=trial.letters,
    )


def _read_side(request: Request, trial: PlayedTrial, episode: int, offset: int) -> TurnSide:
    """Return an agent at a turn of an episode; at its last one if it made fewer."""
    turns = trial.turns_of(_clamp(trial, episode))
    number = turns[min(offset, len(turns) - 1)] if turns else turns.start
    with library_of(request).open(request.path_params["run"]) as run:
        (turn,) = read_turns(run, trial, trial.check_turn(number))
    return TurnSide(
        head=describe_trial(request, trial),
        timeline=msgspec.UNSET if is_twin(request) else draw_timeline(trial, LOW_HEIGHT),
        turn=turn,
        first=turns.start,
        turns=len(turns),
    )


def _clamp(trial: PlayedTrial, episode: int) -> int:
    """Return an episode that there is: the last one if an agent played fewer."""
    known = len(trial.episodes) + (trial.turns > trial.firsts[-1])
    return min(episode, max(known - 1, 0))


TURNS = f"{TRIAL}/turns"
ROUTES: list[Any] = [
    *page(f"{TURNS}/{{turn:int}}", "turn.html", read_turn),
    *page(f"{TRIAL}/episodes/{{episode:int}}", "turn.html", read_episode),
    *page(TURNS, "turns.html", read_list),
]


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as text."""

    turn: ShownTurn
    starts: bool
    """Whether it is the first of its episode here."""
    saw: str
    feedback: str
    answered: str
    messages: list[Message]
    """What is new in the conversation."""
    tokens: str
    """What it took."""
    note: str
    """The rest of the note."""


def write_transcript(turns: Sequence[ShownTurn], letters: bool = False) -> Iterator[TranscriptEntry]:
    """Yield turns as text; where the domain says so, whole numbers are letters."""
    episode, earlier = -1, list[Message]()
    for turn in turns:
        reply = turn.reply
        talk, rest = read_messages(None if reply is None else reply.note)
        tokens, rest = _read_tokens(rest)
        yield TranscriptEntry(
            turn=turn,
            starts=turn.episode != episode,
            saw=format_answer(turn.observation, letters, MAX_SEEN),
            feedback="" if turn.feedback is None else format_value(turn.feedback, MAX_SEEN),
            answered="" if reply is None else format_answer(reply.action, letters, MAX_SEEN),
            messages=leave_out(talk, earlier),
            tokens=tokens,
            note="" if rest is None else format_value(rest, MAX_SEEN),
        )
        episode, earlier = turn.episode, talk or earlier


def _read_tokens(note: Any) -> tuple[str, Any]:
    """Return how many tokens a note counts, in words, and the rest of it."""
    if not isinstance(note, Mapping) or not all(
        isinstance(note.get(name), int) for name in ("tokens_in", "tokens_out")
    ):
        return "", note
    rest = {name: value for name, value in note.items() if name not in ("tokens_in", "tokens_out", "calls", "seconds")}
    return f"{note['tokens_in']:,} tokens in, {note['tokens_out']:,} out", rest or None
