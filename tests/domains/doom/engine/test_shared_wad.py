"""The trials of an experiment share one WAD, and nobody can tell from what is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.engine import launch, shared_wad
from openfield.domains.doom.maps import scenario
from openfield.domains.doom.maps.scenario import map_name, read_wad
from openfield.domains.doom.world import DoomWorld
from openfield.errors import WorldFault
from openfield.trial import Trial
from support.doom.worlds import TASKS, trace


@pytest.fixture(autouse=True)
def _nothing_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_wad, "_planned", {})
    engines.close_idle_engines()


def some_trials(domain: DoomDomain, **settings: Any) -> list[Trial]:
    values = {"training": 1, "episodes": 3, "before": 1, "limit": 30, **settings}
    return domain.trials(
        2, seed=3, novelty="tough:hard+slim:hard" if domain is DUEL else "203:hard", **values, unchanged=0
    )


@pytest.mark.engine
@TASKS
def test_trials_in_one_wad_show_what_they_show_alone(domain: DoomDomain) -> None:
    trials = some_trials(domain)
    alone = [trace(domain, DoomWorld(domain, trial)) for trial in trials]
    domain.expect(trials)
    worlds = [DoomWorld(domain, trial) for trial in reversed(trials)]
    together = [trace(domain, world) for world in worlds]
    assert together[::-1] == alone
    assert len({world._maps.wad for world in worlds}) == 1
    names = {name for name, _ in read_wad(worlds[0]._maps.wad.read_bytes())}
    assert {map_name(number) for number in range(1 + 3 + 3)} <= names


@pytest.mark.engine
def test_a_run_starts_one_engine_for_all_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []

    def start(wad: Path, *rest: Any) -> Any:
        started.append(wad)
        return start_game(wad, *rest)

    start_game = launch.start_game
    monkeypatch.setattr(launch, "start_game", start)
    result = openfield.run(["random"], some_trials(DUEL), tmp_path / "run.sqlite")
    assert [cell.outcome for cell in result.cells] == ["done"] * 3
    assert len(started) == 1


def test_only_trials_of_the_same_player_are_bound_together() -> None:
    trials = [*some_trials(DUEL), *some_trials(DUEL, player_health=50)]
    DUEL.expect(trials)
    wads = [DoomWorld(DUEL, trial)._maps.wad for trial in trials]
    assert wads == [wads[0]] * 3 + [wads[3]] * 3
    assert wads[0] != wads[3]


def test_a_wad_does_not_grow_beyond_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = some_trials(ARENA)
    monkeypatch.setattr(shared_wad, "MAX_MAPS", 4)
    ARENA.expect(iter(trials))
    made = [DoomWorld(ARENA, trial)._maps for trial in trials]
    assert [each.first for each in made] == [0, 1, 0]
    assert made[0].wad == made[1].wad != made[2].wad


def test_what_was_expected_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_wad, "MAX_EXPECTED", 3)
    old, new = some_trials(DUEL), some_trials(ARENA)
    DUEL.expect(old)
    ARENA.expect(new)
    assert list(shared_wad._planned) == [trial.id for trial in new]


def test_what_is_expected_again_is_not_bound_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old client in the mode of one trial comes back for every trial of its experiment."""
    made: list[int] = []

    def build_wad(*rest: Any) -> bytes:
        made.append(len(rest[1]))
        return scenario.build_wad(*rest)

    monkeypatch.setattr(shared_wad, "build_wad", build_wad)
    for trial in some_trials(DUEL):
        DUEL.expect(some_trials(DUEL))
        assert len(read_wad(DoomWorld(DUEL, trial)._maps.wad.read_bytes()))
    assert made == [7]


def test_what_is_expected_again_is_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_wad, "MAX_EXPECTED", 6)
    for domain in (DUEL, ARENA, DUEL):
        domain.expect(some_trials(domain))
    monkeypatch.setattr(shared_wad, "MAX_EXPECTED", 3)
    ARENA.expect([])
    assert list(shared_wad._planned) == [trial.id for trial in some_trials(DUEL)]


def test_a_wad_that_is_gone_is_written_again() -> None:
    """As by whatever clears the folder of temporary files while a server goes on for weeks."""
    trials = some_trials(DUEL)
    DUEL.expect(trials)
    wad = DoomWorld(DUEL, trials[0])._maps.wad
    content = wad.read_bytes()
    wad.unlink()
    assert DoomWorld(DUEL, trials[1])._maps.wad.read_bytes() == content


def test_a_trial_that_cannot_be_laid_out_keeps_no_other_from_it() -> None:
    (trial,) = ARENA.trials(1, novelty="207:easy", training=0, episodes=1, unchanged=0)
    playable = msgspec.structs.replace(trial, settings={"goal": [0, 0, 512]})  # nothing stands in the goal
    phase = msgspec.structs.replace(trial.phases[0], novelty=())
    broken = msgspec.structs.replace(playable, phases=(phase,))
    ARENA.expect([broken, playable])
    assert DoomWorld(ARENA, playable)._maps.first == 0
    for expected in ([broken, playable], [broken]):
        ARENA.expect(expected)
        with pytest.raises(WorldFault, match="no room left"):
            DoomWorld(ARENA, broken).reset()


def test_a_trial_that_cannot_be_played_keeps_no_other_from_it() -> None:
    trials = some_trials(DUEL)
    phase = msgspec.structs.replace(trials[1].phases[0], novelty=("no such thing",))
    DUEL.expect([trials[0], msgspec.structs.replace(trials[1], phases=(phase,)), trials[2]])
    assert DoomWorld(DUEL, trials[2])._maps.first == 1
