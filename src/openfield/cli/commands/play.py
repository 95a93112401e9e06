"""`openfield play`: let people take the agent's place, recorded like one, in a browser or at a terminal."""

from __future__ import annotations

import os
import stat
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from openfield.cli.shared.domain_options import DomainOptions, DomainTarget, find_target, prepare_changes
from openfield.cli.shared.parameters import SERVED_TRIALS, Output
from openfield.cli.shared.results import print_result, print_seed
from openfield.console import escape_controls, say_count
from openfield.options import MORE, CommandChanges, Count, Port, changed_fields
from openfield.runner.experiment import ServedTrials

if TYPE_CHECKING:
    from openfield.cell import Cell
    from openfield.domain import Domain
    from openfield.trial import Trial


@Parameter(name="*", group=Group("Where", sort_key=3))
@dataclass(frozen=True)
class PlaceOptions:
    """Where people play."""

    terminal: bool = False
    """Play here, with typed lines, as without the extra `view`."""
    no_browser: bool = False
    """Only print the address, do not open it."""
    full: bool = False
    """Play whole trials, as with any option that chooses trials."""
    people: Annotated[Count | None, Parameter(metavar="NUMBER")] = None
    """Let this number of people play, each with a link of their own [1]."""
    host: Annotated[str, Parameter(metavar="ADDRESS")] = "127.0.0.1"
    """The address to listen on [127.0.0.1]."""
    port: Annotated[Port | None, Parameter(group=MORE)] = None
    """The port to listen on [7464, or a free one]; 0 takes a free one."""
    links: Annotated[Path | None, Parameter(group=MORE, metavar="FILE")] = None
    """The file with the secret of the links [beside the run file]; it is made if it is missing."""


PLACE = PlaceOptions()


def play(
    domain: str,
    /,
    options: DomainOptions = None,
    target: DomainTarget = None,
    *,
    trial_options: ServedTrials = SERVED_TRIALS,
    place: PlaceOptions = PLACE,
    output: Output = None,
    agent_name: Annotated[str, Parameter(metavar="NAME")] = "human",
) -> None:
    """Play a domain yourself, or let people play. Did you notice the change?

    Without options about trials it is a game of about two minutes: the world may change or not, and the end tells the
    truth, with how agents and earlier players did in the same trial.

    Args:
        domain: A domain's name, `module:attribute`, `file.py`, or an experiment file (`*.toml`), whose table `[people]`
            describes a study. Its options: openfield play DOMAIN --help
        options: Options of the domain.
        target: What the first word names.
        trial_options: Which trials.
        place: Where people play.
        output: The run file [runs/DOMAIN-played.sqlite].
        agent_name: Your name in the record [human].

    Example:
        openfield play birds
    """
    from openfield.errors import InvalidInput
    from openfield.view.requirements import check_view

    target = target or find_target("play", domain, trial_options)
    known, said = target.domain, target.experiment
    is_plain = target.file is not None and options is None  # the file says it all
    changes = CommandChanges() if is_plain else prepare_changes(known, "play", options)
    path = output or Path(f"runs/{known.name}-played.sqlite" if said.output is None else said.output)
    file = {} if target.file is None else said.given
    is_game = not (place.full or place.people or target.file or trial_options.given or _chooses(options))
    asked = _Asked(Path(domain), known, changes, path, agent_name, file, is_game)
    if is_game:  # nothing that was typed can be wrong any more
        print(f"Loading {known.name} …", file=sys.stderr, flush=True)
    if _plays_in_browser(place, changes):
        _play_in_browser(asked, trial_options, place)
        return
    if place.people is not None or asked.people_table:
        check_view()
        raise InvalidInput("People play in a browser: leave out --terminal, and give no lines from a file or a pipe.")
    _play_at_terminal(asked, trial_options)


def _chooses(options: Any) -> bool:
    """Return whether options of the domain are given, which may choose trials."""
    return options is not None and bool(changed_fields(options))


@dataclass(frozen=True)
class _Asked:
    """The trials to play, and the file that records them."""

    name: Path
    """What the user named: a domain, or a file."""
    domain: Domain[Any]
    changes: CommandChanges
    path: Path
    agent: str
    file: dict[str, Any]
    """The keys of the experiment file; none without one."""
    is_game: bool = False
    """Whether it is the game: a short trial that ends with the truth about it."""

    @property
    def people_table(self) -> dict[str, Any]:
        """The table `[people]` of the file."""
        return dict(self.file.get("people") or {})

    def make_trials(self, options: ServedTrials, **limits: Any) -> tuple[list[Trial], dict[str, str]]:
        """Make the trials, from the file if there is one."""
        from openfield.errors import InvalidInput
        from openfield.runner.experiment import make_experiment

        if self.is_game:
            from openfield.view.play.game import deal_game

            experiment = self.changes.experiment
            settings = {**self.changes.usual_settings, **experiment.get("settings", {})}
            return deal_game(self.domain, self.agent, self.path, settings), {}
        if not self.file:
            return options.make(self.domain, self.changes, self.path, 1, **limits)
        if options.given:
            raise InvalidInput(
                "The file says which trials are played. Leave out --trials, --novelty, --set and others."
            )
        return make_experiment(self.file).make_trials(self.domain, self.path, endless=True)


def _plays_in_browser(place: PlaceOptions, changes: CommandChanges) -> bool:
    """Return whether people play in a browser: where it is installed, unless they type."""
    from openfield.view.requirements import check_view, has_view

    if place.people is not None or place.no_browser:
        check_view()
    typed = changes.terminal or (_has_piped_lines() and place.people is None and not place.no_browser)
    return has_view() and not place.terminal and not typed


def _has_piped_lines() -> bool:
    """Return whether standard input is a pipe or a file, in which a player's lines may stand."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):  # it is closed, or not a file of the system
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _play_at_terminal(asked: _Asked, trial_options: ServedTrials) -> None:
    from openfield.agents.human import make_human
    from openfield.errors import Cancelled
    from openfield.result import Result
    from openfield.runner.plan import make_plan
    from openfield.runner.run import run_plan

    unhurried, facts = asked.make_trials(trial_options, reply_seconds=None)
    person = next(iter(asked.changes.agents.values()), make_human(asked.domain))
    try:
        plan = replace(make_plan({asked.agent: person}, unhurried), facts=facts)
        run_plan(plan, asked.path)
    except Cancelled:
        raise Cancelled(f"Stopped; your trials are in {asked.path}. The same command goes on.") from None
    if asked.is_game:
        _tell_truth(asked, plan.cells)
    else:
        _finish(asked, facts, Result([asked.path]))


def _tell_truth(asked: _Asked, cells: Sequence[Cell]) -> None:
    """Print what was true of the trial that was played last, and how others did in it."""
    from openfield.journal.reader import SCORED, Run
    from openfield.view.play.game import name_agents_file, play_agents, reveal_trial

    cell = cells[-1]
    with Run(asked.path) as run:
        if run.cell(cell.id).outcome not in SCORED:
            return
    truth, *_ = reveal_trial(asked.domain, cell, asked.path, with_film=False).as_lines()
    print(escape_controls(truth), flush=True)
    print("The agents of the domain play the same trial …", file=sys.stderr, flush=True)
    play_agents(asked.domain, [each.trial for each in cells], name_agents_file(asked.path))
    for line in reveal_trial(asked.domain, cell, asked.path, with_film=False).as_lines()[1:]:
        print(escape_controls(line))
    name, run_file = quote(str(asked.name)), quote(str(asked.path))
    print(f"\nRecorded in {asked.path}. See it: openfield view {run_file}   Another world: openfield play {name}")


def _play_in_browser(asked: _Asked, trial_options: ServedTrials, place: PlaceOptions) -> None:
    """Serve play pages until all people are done, or until interrupted; then print the result."""
    from openfield.errors import Cancelled
    from openfield.journal.leases import holding
    from openfield.journal.writer import Journal
    from openfield.provenance.provenance import RunOrigin
    from openfield.result import Result
    from openfield.runner.experiment import naming_file
    from openfield.view.play.game import make_reveals
    from openfield.view.play.people import check_dealing, make_links, read_people
    from openfield.view.play.people_study import PeopleStudy
    from openfield.view.play.play_server import PlayServer

    with naming_file(asked.name) if asked.people_table else nullcontext():
        people = read_people(asked.people_table)
        trials, facts = asked.make_trials(trial_options)
        check_dealing(people, trials)
    practice = None if people.practice is None else _make_practice(asked, people.practice, trials[-1])
    try:
        with holding(asked.path) as begun, Journal(asked.path) as journal:
            links = make_links(place.links or asked.path.with_suffix(".links"), place.people or 1)
            origin = RunOrigin({}, [asked.domain])
            journal.enter((), {}, {**facts, **origin.facts()}, origin.sources())
            study = PeopleStudy(journal, asked.domain, trials, people, links, asked.agent, practice)
            study.reveal = make_reveals(asked.domain, trials, asked.path) if asked.is_game else None
            server = PlayServer(study, place.host, place.port)

            def ready() -> None:
                begun()
                _announce(server.links, asked.path, place)

            server.serve(ready)
    except KeyboardInterrupt:
        raise Cancelled(f"Stopped; the trials played are in {asked.path}. The same command goes on.") from None
    if asked.is_game:
        _tell_truth(asked, study.persons[0].cells)
    else:
        _finish(asked, facts, Result([asked.path]))


def _make_practice(asked: _Asked, settings: dict[str, Any], like: Trial) -> Trial:
    """Return a trial without a novelty, with the settings of the others and some changed."""
    from openfield.runner.experiment import make_experiment
    from openfield.trial import derive

    blinding = ("onset", "unchanged")  # nothing changes in it
    wanted = {key: value for key, value in asked.file.get("settings", {}).items() if key not in blinding} | settings
    keys = {"trials": 1, "seed": derive(like.seed, "practice"), "novelty": "none", "settings": wanted}
    return make_experiment(keys).make_trials(asked.domain, asked.path, endless=True)[0][-1]


def _announce(links: list[str], path: Path, place: PlaceOptions) -> None:
    if place.people is None:
        print(f"Play: {links[0]}   Recorded in {path}. Ctrl-C stops.", flush=True)
        if not place.no_browser:
            webbrowser.open(links[0])
        return
    for number, link in enumerate(links, 1):
        print(f"p{number:02d} {link}")
    count = say_count(len(links), "link")
    print(f"{count}, each for one person. Recorded in {path}. Ctrl-C closes the study.", flush=True)


def _finish(asked: _Asked, facts: dict[str, str], result: Any) -> None:
    print_result(result, as_json=False)
    print_seed(facts)
    for finish in asked.changes.finish:
        finish(result)
