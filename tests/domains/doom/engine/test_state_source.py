"""What is read in the engine's memory is what the engine's package shows; where it is not, the package is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.engine import state_source, watchdog, workdir
from support.doom.worlds import TASKS, chance, open_world, play, trace


@pytest.mark.engine
@pytest.mark.parametrize(
    ("domain", "novelty"),
    [(DUEL, "bolts:hard"), (ARENA, "none"), (ARENA, "208:hard")],
    ids=["bolts", "arena", "return"],
)
def test_memory_and_package_agree_at_every_tick(domain: DoomDomain, novelty: str) -> None:
    world, compared = open_world(domain, novelty, limit=100), 0
    for turn in play(world, chance(domain)):
        engine = world._engine
        assert engine is not None
        assert engine._agrees
        state = engine._game.get_state()
        if turn.last is None and state is not None and engine._memory is not None:
            assert state_source.sources_agree(engine._memory, state_source.PackageSource(state))
            compared += 1
    assert compared > 20


@pytest.mark.engine
@TASKS
def test_where_memory_lies_otherwise_the_package_is_believed(
    domain: DoomDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = trace(domain, open_world(domain, limit=40))
    for first in (state_source._FIRST + 8, 1 << 40):
        monkeypatch.setattr(state_source, "_FIRST", first)
        world = open_world(domain, limit=40)
        (workdir.process_folder() / "layout").unlink(missing_ok=True)
        with pytest.warns(RuntimeWarning, match="does not know the memory layout of vizdoom") as said:
            world.reset()
        assert len(said) == 1  # and no more in this process
        assert world._engine is not None
        assert not world._engine._agrees
        world.close()
        assert trace(domain, open_world(domain, limit=40)) == expected


def test_a_nonsensical_count_is_no_agreement(tmp_path: Path) -> None:
    """A later version may have anything where the number of things was."""
    world = open_world(DUEL)
    world.reset()
    assert world._engine is not None
    path = tmp_path / "memory"
    path.write_bytes(b"\xff" * (state_source._FIRST + 4 * state_source._SIZE))
    other = state_source.MemorySource(path)
    assert not state_source.sources_agree(other, state_source.PackageSource(world._engine._game.get_state()))
    path.write_bytes(b"short")
    other = state_source.MemorySource(path)
    assert not state_source.sources_agree(other, state_source.PackageSource(world._engine._game.get_state()))
    path.write_bytes(b"")
    assert state_source.open_memory(path) is None
    assert state_source.open_memory(tmp_path / "none") is None
    world.close()


@pytest.mark.engine
def test_memory_that_is_not_to_be_found_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trace(DUEL, open_world(DUEL, limit=40))
    engines.close_idle_engines()
    monkeypatch.setattr(watchdog, "_engines", lambda: iter(()))
    assert trace(DUEL, open_world(DUEL, limit=40)) == expected
    engines.close_idle_engines()
