"""A trial that an agent played: its episodes on a timeline, who else played it, and a search in its turns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
from anyio import from_thread
from starlette.requests import Request

from openfield.core import Reply, Turn
from openfield.errors import InvalidInput
from openfield.journal.reader import Episode, Run
from openfield.metrics.performance import mean, performances
from openfield.record import Step
from openfield.report.addresses import read_name
from openfield.trial import RedLight
from openfield.view.frames import WarmOrder
from openfield.view.page import library_of, page
from openfield.view.trials.conversation import Message, leave_out, read_messages
from openfield.view.trials.timeline import Timeline, draw_timeline
from openfield.view.trials.trial import PlayedTrial, SameTrial, TrialReader
from openfield.view.trials.values import MAX_TEXT, format_answer, format_value

MAX_ROWS = 100
"""Episodes in the table of one page."""
MAX_FOUND = 100
"""Turns that one request returns."""
AROUND = 60
"""Characters of an excerpt on both sides of what was found."""
SEARCH_SECONDS = 0.25
"""How long one request may search."""


class TrialHead(msgspec.Struct, frozen=True, kw_only=True):
    """What every page of a trial says about it."""

    run: str
    run_name: str
    cell: str
    trial: str
    agent: str
    domain: str
    novelty: list[str]
    """What changes at the onset; in an unchanged twin nothing does."""
    changes: str
    """The novelty in the words of the domain."""
    twin: bool
    """Whether nothing changes although the scenario has a novelty."""
    red_light: RedLight
    repeat: int
    person: str
    """Who played it, if people did."""
    outcome: str | None
    note: str
    episodes: int
    """How many are over."""
    under_way: bool
    """Whether there are turns of one more."""
    turns: int
    seconds: float
    performance: float | None
    """The mean of the test episodes."""
    onset: int | None
    detected: int | None
    """The first episode from the onset on in which the agent said that the world has changed."""
    alarms: int
    """Test episodes before the onset, or all of them, in which it said so; none where only tasks change."""
    alarmed: int | None
    """The first of them."""
    draws: bool | None
    letters: bool
    """Whether whole numbers that are seen or answered are letters."""
    peers: Sequence[SameTrial]
    before: str | None
    after: str | None
    """The cells of the same agent before and after this one."""


class EpisodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """An episode in the table."""

    number: int
    first: int
    """The number of its first turn."""
    turns: int
    phase: str
    novel: bool
    performance: float | None
    belief: float | None
    detected: bool
    ended: str
    detail: str
    """What the domain says of it, in one line."""
    strength: float | None
    change: str
    """The novelties in force, beside a strength."""


class TrialSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the agents on the page."""

    head: TrialHead
    timeline: Timeline


class TrialPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a trial."""

    sides: list[TrialSide]
    """The agent, and another one beside it if one was asked for."""
    episodes: list[EpisodeRow]
    start: int
    """The first episode in the table."""
    next: int | None
    """The first episode of the next table."""


def read_trial(request: Request) -> TrialPage:
    """Return what the page of a trial shows."""
    sides = find_sides(request)
    trial = sides[0]
    start = read_number(request, "from", 0)
    rows = [_describe_episode(trial, each) for each in trial.episodes[start : start + MAX_ROWS]]
    following = start + MAX_ROWS
    return TrialPage(
        sides=[TrialSide(head=describe_trial(request, each), timeline=draw_timeline(each)) for each in sides],
        episodes=rows,
        start=start,
        next=following if following < len(trial.episodes) else None,
    )


def read_found(request: Request) -> FoundTurns:
    """Return the turns that fit what is looked for: `?text=`, `?action=`, `?note=`, `?belief=`, from `?from=` on."""
    trial = find_sides(request)[0]
    given = request.query_params
    query = TurnQuery(
        action=given.get("action", ""), note=given.get("note", ""), text=given.get("text", ""), belief=_chance(given)
    )
    if query.is_empty:
        raise InvalidInput("What is looked for? Give ?text=, ?action=, ?note= or ?belief=.")
    with library_of(request).open(request.path_params["run"]) as run:
        return find_turns(run, trial, query, read_number(request, "from", 0))


def trials_of(request: Request) -> TrialReader:
    """Return what reads trials for the application that got a request."""
    found: TrialReader = request.app.state.trials
    return found


def find_sides(request: Request) -> list[PlayedTrial]:
    """Return the trial that an address names, and that of the agent beside it (`?with=CELL`)."""
    reader, run = trials_of(request), request.path_params["run"]
    trial = reader.read(run, read_name(request.path_params["cell"]))
    if trial.draws:
        ready = WarmOrder(str(trial.path), trial.cell.id, library_of(request).trust)
        from_thread.run_sync(request.app.state.frames.warm, ready)  # the first picture need not wait for a process
    other = request.query_params.get("with")
    return [trial, reader.find_peer(trial, run, other)] if other else [trial]


def read_number(request: Request, name: str, usual: int) -> int:
    """Return a whole number from the address.

    Args:
        request: The request.
        name: What it is called.
        usual: The number if the query has none.

    Raises:
        InvalidInput: It is not a number, or below 0.
    """
    text = request.query_params.get(name)
    if text is None:
        return usual
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise InvalidInput(f"{name} is a whole number from 0 on.")
    return int(text)


def describe_trial(request: Request, trial: PlayedTrial) -> TrialHead:
    """Return what a page says about a trial."""
    cell, path = trial.cell, trial.path
    noticing = trial.noticing
    return TrialHead(
        run=request.path_params["run"],
        run_name=path.stem,
        cell=cell.id,
        trial=cell.trial.id,
        agent=cell.agent,
        domain=cell.trial.domain,
        novelty=list(cell.trial.novelty),
        changes=trial.changes,
        twin=cell.trial.is_unchanged_twin,
        red_light=cell.trial.red_light,
        repeat=cell.repeat,
        person=trial.person,
        outcome=cell.outcome,
        note=cell.note,
        episodes=len(trial.episodes),
        under_way=trial.turns > trial.firsts[-1],
        turns=trial.turns,
        seconds=cell.seconds,
        performance=mean(performances(each for each in trial.judged.episodes if each.phase == "test")),
        onset=trial.onset,
        detected=noticing.detection,
        alarms=len(noticing.alarms),
        alarmed=noticing.alarms[0] if noticing.alarms else None,
        draws=trial.draws,
        letters=trial.letters,
        peers=trial.peers,
        before=trial.beside[0],
        after=trial.beside[1],
    )


def _describe_episode(trial: PlayedTrial, episode: Episode) -> EpisodeRow:
    return EpisodeRow(
        number=episode.number,
        first=trial.firsts[episode.number],
        turns=episode.turns,
        phase=episode.phase,
        novel=episode.novel,
        performance=episode.performance,
        belief=None if episode.belief is None else episode.belief.highest,
        detected=episode.detected,
        ended=episode.ended,
        detail="" if episode.detail is None else format_value(episode.detail, 120),
        strength=episode.strength,
        change=episode.change,
    )


def _chance(given: Any) -> float | None:
    text = given.get("belief", "")
    if not text:
        return None
    try:
        chance = float(text)
    except ValueError:
        chance = -1.0
    if not 0.0 <= chance <= 1.0:
        raise InvalidInput("belief is a number from 0 to 1.")
    return chance


TRIAL = "/runs/{run}/trials/{cell}"
ROUTES = [*page(f"{TRIAL}/search", "found.html", read_found), *page(TRIAL, "trial.html", read_trial)]


class TurnQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for; a turn must fit all that is given."""

    action: str = ""
    """A part of the action as text; case does not matter."""
    note: str = ""
    text: str = ""
    """Words that are all in what was seen, fed back, answered or noted."""
    belief: float | None = None
    """The least probability."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is looked for."""
        return self == TurnQuery()


class FoundTurn(msgspec.Struct, frozen=True):
    """A turn that fits."""

    number: int
    episode: int
    action: str
    """Empty without one."""
    belief: float | None
    note: str
    """Empty without one."""
    excerpt: str = ""
    """Where the first word of a text was found, with what stands around it."""


class FoundTurns(msgspec.Struct, frozen=True):
    """Turns that fit, as far as was searched."""

    found: list[FoundTurn]
    next: int | None
    """The turn to go on with; None if all were searched."""
    turns: int


def find_turns(run: Run, trial: PlayedTrial, query: TurnQuery, first: int = 0) -> FoundTurns:
    """Return the turns that fit a query, from a number on.

    Args:
        run: The run file, open.
        trial: The cell.
        query: What is looked for.
        first: The turn to begin with.
    """
    found: list[FoundTurn] = []
    until, start = time.monotonic() + SEARCH_SECONDS, max(first, 0)
    wanted = msgspec.structs.replace(query, action=query.action.lower(), note=query.note.lower())
    words = query.text.lower().split()
    turns = _list_texts(run, trial, start) if words else _list_replies(run, trial, start)
    for number, (reply, text) in enumerate(turns, start):
        if _fits(reply, wanted, trial.letters) and all(word in text.lower() for word in words):
            excerpt = _cut_around(text, words[0]) if words else ""
            found.append(_describe_turn(number, trial, reply, excerpt))
        if len(found) >= MAX_FOUND or time.monotonic() > until:
            return FoundTurns(found, number + 1 if number + 1 < trial.turns else None, trial.turns)
    return FoundTurns(found, None, trial.turns)


def _list_replies(run: Run, trial: PlayedTrial, first: int) -> Iterator[tuple[Reply | None, str]]:
    """Yield the replies from a turn on, without their texts; what was seen is not read."""
    for step in run.raw_steps(trial.cell.id, trial.cell.attempt, first + 1):
        yield step.reply, ""


def _list_texts(run: Run, trial: PlayedTrial, first: int) -> Iterator[tuple[Reply | None, str]]:
    """Yield the replies from a turn on, each with the text of what is new in the turn, as transcripts show it."""
    before = max(first - 1, 0)
    steps = run.steps(trial.cell.id, trial.cell.attempt, before)
    shown, earlier = next(steps, Step(None, 0, None)).turn, list[Message]()
    replies = chain(steps, [None])
    for number, step in enumerate(replies, before):
        if number >= trial.turns:
            return
        reply = None if step is None else step.reply
        text, talk = _write_all(shown, reply, earlier, trial.letters)
        if number >= first:
            yield reply, text
        shown, earlier = (None if step is None else step.turn) or shown, talk or earlier


def _describe_turn(number: int, trial: PlayedTrial, reply: Reply | None, excerpt: str) -> FoundTurn:
    episode = trial.episode_of(number)
    if reply is None:
        return FoundTurn(number, episode, "", None, "", excerpt)
    belief = None if reply.belief is None else reply.belief.highest
    note = "" if reply.note is None else format_value(reply.note)
    return FoundTurn(number, episode, format_answer(reply.action, trial.letters), belief, note, excerpt)


def _fits(reply: Reply | None, query: TurnQuery, letters: bool) -> bool:
    if reply is None:
        return not query.action and not query.note and query.belief is None
    if query.belief is not None and (reply.belief is None or reply.belief.highest < query.belief):
        return False
    if query.action and query.action not in format_answer(reply.action, letters, MAX_TEXT).lower():
        return False
    return not query.note or query.note in _write(reply.note).lower()


def _write_all(
    turn: Turn | None, reply: Reply | None, earlier: Sequence[Message], letters: bool
) -> tuple[str, list[Message]]:
    """Return as text what a reader may look for in a turn, and the whole conversation so far."""
    talk, rest = read_messages(None if reply is None else reply.note)
    parts = [f"{each.thinking} {each.text}".strip() for each in leave_out(talk, earlier)] if talk else []
    if turn is not None:
        parts += [_write(turn.feedback), *([] if talk else [format_answer(turn.observation, letters, MAX_TEXT)])]
    parts += [] if reply is None else [format_answer(reply.action, letters, MAX_TEXT), _write(rest)]
    return "\n".join(part for part in parts if part), talk


def _write(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else format_value(value, MAX_TEXT)


def _cut_around(text: str, word: str) -> str:
    at = max(text.lower().find(word), 0)
    start, end = max(at - AROUND, 0), at + len(word) + AROUND
    return f"{'…' * (start > 0)}{' '.join(text[start:end].split())}{'…' * (end < len(text))}"
