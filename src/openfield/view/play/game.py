"""The game of `openfield play DOMAIN`: a short blind trial whose world may change, and afterwards the truth about it.

All players of a domain meet the same trials in the same order, so that each can see how others did. `deal_game`
finds the next one, `reveal_trial` says whether and when the world changed, who noticed, and shows that moment.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from openfield.cell import Cell
from openfield.domain import Domain
from openfield.errors import InvalidInput, OpenfieldError
from openfield.journal.reader import SCORED, CellRecord, Run
from openfield.metrics.performance import mean, performances, split_periods
from openfield.report.film import DomainFilm, film_cell
from openfield.report.words import NONE, format_number, format_sentence
from openfield.result import Result
from openfield.runner.experiment import RunOptions
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan, with_options
from openfield.trial import Trial, derive

SHARE_CHANGED = 2 / 3
"""How often the world changes."""
MAX_AGENTS = 3
"""How many of the domain's agents play the same trial."""
MAX_NOVELTIES = 3
"""How many novelties are tried until one can be played in a short trial."""
MAX_REPEATS = 20
"""How many trials in a row may be ones that were dealt before, in a domain that has only few."""
AGENT_BUDGET = "60s"
"""After this time none of them begins any more: a person waits for them."""
DRAWN, PLAYED = "The moment of the change is being drawn.", "The agents of this domain play the same trial …"
"""What a reveal still waits for."""
NEVER_CHANGED = "Your world never changed."


class PlayerScore(msgspec.Struct, frozen=True):
    """A row of the reveal: how one player did."""

    name: str
    noticed: str
    before: str
    after: str
    """Performances before the change and after it, or a dash."""


class Reveal(msgspec.Struct, frozen=True):
    """The truth about a trial that was played."""

    title: str
    text: str
    """What changed, and when the player noticed."""
    players: list[PlayerScore]
    """The player first, then earlier ones, and agents."""
    episodes: list[tuple[bool, float | None]]
    """Whether the world had changed in each test episode, and what the player believed then."""
    film: DomainFilm | None = None

    def as_content(self) -> dict[str, Any]:
        """Return it for a page, with films as addresses that hold them."""
        clips = [] if self.film is None else self.film.clips
        films = [
            {
                "title": clip.title,
                "image": f"data:image/webp;base64,{base64.b64encode(clip.data).decode()}" if clip.data else "",
                "lines": list(clip.lines),
            }
            for clip in clips
        ]
        return {**msgspec.to_builtins(msgspec.structs.replace(self, film=None)), "films": films}

    def as_lines(self) -> list[str]:
        """Return it as lines for a terminal."""
        rows = [("", "noticed", "before", "after"), *(msgspec.structs.astuple(each) for each in self.players)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return [f"{self.title} {self.text}", "", *table]


def deal_game(domain: Domain[Any], agent: str, run: Path, settings: Mapping[str, Any]) -> list[Trial]:
    """Return what a player is given next: the first trial of the domain's that they have not finished.

    A trial that it comes after, such as a training that several share, stands before it.

    Args:
        domain: What is played.
        agent: What the player is called in the record.
        run: The run file.
        settings: Settings that differ from those of short trials.

    Raises:
        InvalidInput: Nothing changes in the domain, or its trials are all finished.
    """
    if not domain.novelties:
        raise InvalidInput(f"Nothing changes in {domain.name}, so there is nothing to notice. Play it: add --full")
    done: set[str] = set()
    if run.exists():
        with Run(run) as reader:
            done = {cell for cell, status in reader.statuses().items() if status.outcome in SCORED}
    for number in range(len(done) + MAX_REPEATS):
        trials = _make_trials(domain, number, settings)
        if Cell(agent, trials[-1]).id not in done:
            return trials
    raise InvalidInput(f"{domain.name} has no further trials for {agent}. To play them again: --output FILE")


def _make_trials(domain: Domain[Any], number: int, settings: Mapping[str, Any]) -> list[Trial]:
    """Return a trial by its number, and any it comes after. The world changes in most, in one of the domain's ways."""
    seed = derive(number, domain.name, "game")
    draw = Random(seed)
    changes = draw.random() < SHARE_CHANGED
    names = [each.id for each in domain.novelties if each.difficulty != "easy"]
    draw.shuffle(names)
    short = {"preset": "short", **settings, "unchanged": 1}
    for novelty in names[:MAX_NOVELTIES]:
        with suppress(OpenfieldError):  # some novelties need what short trials do not have
            return _pick(domain.trials(1, seed, novelty, **short), changes)
    return _pick(domain.trials(1, seed, domain.demo_novelty or domain.default_novelty, **short), changes)


def _pick(trials: Sequence[Trial], changes: bool) -> list[Trial]:
    """Return the test in which the world changes, or else does not, if there is one, without a limit of time."""
    needed = {trial.after for trial in trials}
    tests = [trial for trial in trials if trial.id not in needed]
    chosen = next((trial for trial in tests if trial.is_changed == changes), tests[0])
    before = next((trial for trial in trials if trial.id == chosen.after), None)
    if before is None:
        return [_without_limit(chosen)]
    unhurried = _without_limit(before)
    return [unhurried, msgspec.structs.replace(_without_limit(chosen), after=unhurried.id)]


def _without_limit(trial: Trial) -> Trial:
    """Return a trial in which a person may think."""
    return msgspec.structs.replace(trial, limits=msgspec.structs.replace(trial.limits, reply_seconds=None))


def play_agents(domain: Domain[Any], trials: Sequence[Trial], run: Path) -> None:
    """Let agents that come with a domain play a trial, unless they have; those that cannot are left out.

    Args:
        domain: The domain.
        trials: The trial, behind any that it comes after.
        run: Their run file.
    """
    agents = list(domain.demo_agents or domain.agents)[:MAX_AGENTS]
    with suppress(OpenfieldError):
        plan = make_plan(agents, list(trials))
        run.parent.mkdir(parents=True, exist_ok=True)
        run_plan(with_options(plan, RunOptions(workers=1, budget=AGENT_BUDGET)), run)


def name_agents_file(run: Path) -> Path:
    """Return the file in which agents play the trials of a file that people play."""
    return run.with_name(f"{run.stem}-agents{run.suffix}")


def reveal_trial(domain: Domain[Any], cell: Cell, run: Path, with_film: bool = True) -> Reveal:
    """Return the truth about a trial that was played, and how all who played it did.

    Args:
        domain: The domain.
        cell: Who played which trial.
        run: The run file of people; the agents' lies beside it.
        with_film: Add a film of the moment of the change, where the domain draws.
    """
    files = [path for path in (run, name_agents_file(run)) if path.exists()]
    played = [each for each in Result(files).cells if each.trial.id == cell.trial.id and each.outcome in SCORED]
    own = next(each for each in played if each.id == cell.id)
    others = [each for each in played if each.id != cell.id]
    title = _tell_change(own, domain)
    return Reveal(
        title=title,
        text=_tell_noticed(own),
        players=[_describe(own, "you"), *(_describe(each, _name(each)) for each in others)],
        episodes=[
            (each.novel, None if each.belief is None else each.belief.highest)
            for each in own.episodes
            if each.phase == "test"
        ],
        film=_film(domain, cell, run) if with_film else None,
    )


def _name(cell: CellRecord) -> str:
    return f"{cell.agent} {cell.person}".strip()


def _film(domain: Domain[Any], cell: Cell, run: Path) -> DomainFilm | None:
    """Return a film of the moment, if the world changed and can be drawn."""
    try:
        with Run(run) as reader:
            record = reader.cell(cell.id)
            return film_cell(reader, record, domain) if record.trial.is_changed else None
    except OpenfieldError:  # a reveal without a film is better than none
        return None


def _unit(cell: CellRecord) -> str:
    return "task" if any(phase.steps for phase in cell.trial.phases) else "episode"


def _tell_change(cell: CellRecord, domain: Domain[Any]) -> str:
    """Return whether and when the world changed, and how."""
    periods = split_periods(cell)
    if not cell.trial.is_changed:
        return NEVER_CHANGED
    if not periods.after:
        return "Your world was to change, but the trial ended before."
    count = len(periods.before) + len(periods.after)
    place = f"{_unit(cell)} {len(periods.before) + 1} of {count}"
    return f"Your world changed before {place}: {domain.describe(cell.trial.novelty)}."


def _tell_noticed(cell: CellRecord) -> str:
    """Return when the player noticed, in a sentence."""
    verdict = _describe(cell, "you").noticed
    if verdict == NONE:
        return "You never said what you believed."
    if not cell.trial.is_changed:
        return "You were right not to see a change." if verdict == "no false alarm" else f"You saw one: {verdict}."
    return "You did not notice." if verdict == "no" else format_sentence(f"you noticed: {verdict}")


def _describe(cell: CellRecord, name: str) -> PlayerScore:
    """Return how a player did."""
    periods = split_periods(cell)
    before, after = (mean(performances(part)) for part in (periods.before, periods.after))
    return PlayerScore(name, _say_noticed(cell), format_number(before), format_number(after))


def _say_noticed(cell: CellRecord) -> str:
    """Return when a player noticed the change, or raised a false alarm, in few words."""
    periods, unit = split_periods(cell), _unit(cell)
    if all(each.belief is None for each in (*periods.before, *periods.after)):
        return NONE
    alarm = next((place for place, each in enumerate(periods.before, 1) if each.detected), None)
    late = next((place for place, each in enumerate(periods.after) if each.detected), None)
    false = "" if alarm is None else f"false alarm in {unit} {alarm}"
    if not periods.after:
        return false or "no false alarm"
    delay = "no" if late is None else "at once" if late == 0 else f"{late} {unit}{'s' if late > 1 else ''} late"
    return f"{delay}, {false}" if false else delay


def make_reveals(domain: Domain[Any], trials: Sequence[Trial], run: Path) -> Callable[[Cell], Iterator[dict[str, Any]]]:
    """Return what yields the content of a page after a trial: the truth at once, its film, and what agents did.

    Agents play while the film is drawn. What is still to come is said in words, under `waiting`.
    """

    def reveal(cell: Cell) -> Iterator[dict[str, Any]]:
        playing = threading.Thread(target=play_agents, args=(domain, trials, name_agents_file(run)), daemon=True)
        revealed = reveal_trial(domain, cell, run, with_film=False)
        playing.start()
        if cell.trial.is_changed:
            yield {**revealed.as_content(), "waiting": f"{DRAWN} {PLAYED}"}
            revealed = msgspec.structs.replace(revealed, film=_film(domain, cell, run))
        yield {**revealed.as_content(), "waiting": PLAYED}
        playing.join()
        whole = reveal_trial(domain, cell, run, with_film=False)
        yield {**msgspec.structs.replace(whole, film=revealed.film).as_content(), "waiting": ""}

    return reveal
