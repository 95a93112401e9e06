"""What the worlds of a process share, in whatever threads they live: places, engines at rest, WADs."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.engine import watchdog, workdir
from openfield.domains.doom.engine.launch import EngineView


def test_no_two_engines_of_a_process_have_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial may last while hundreds of others come and go; two engines with one settings file would be mixed up."""
    monkeypatch.setattr(watchdog, "MAX_ENGINES", 3)
    own = watchdog.Watchdog(tmp_path, patience=60.0)
    lasting, passing = own.add_engine(), own.add_engine()
    for _ in range(10):
        passing = own.add_engine()
        assert passing.number != lasting.number
    third = own.add_engine()
    assert len({lasting.number, passing.number, third.number}) == 3
    with pytest.raises(RuntimeError, match="3 engines"):
        own.add_engine()
    own.close()


def test_engines_at_rest_are_given_to_one_world_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where worlds are opened and closed in many threads at once, as those of a server."""
    faults: list[str] = []

    class Name:
        def __eq__(self, other: object) -> bool:
            time.sleep(0.001)  # lets another thread look meanwhile
            return True

        __hash__ = None  # type: ignore[assignment]

    class Stub:
        def __init__(self, wad: Any, view: EngineView | None = None) -> None:
            self.wad, self.view = wad, view or EngineView()

        def close(self) -> None:
            pass

    def work() -> None:
        try:
            for _ in range(20):
                engine = engines.take_engine(name)
                time.sleep(0.003)
                engines.release_engine(engine)
        except ValueError as error:
            faults.append(str(error))

    name: Any = Name()
    monkeypatch.setattr(engines, "Engine", Stub)
    monkeypatch.setattr(engines, "_idle", [])
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_a_wad_is_there_as_a_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    content, write, looks = os.urandom(1000), Path.write_bytes, 0

    def write_slowly(path: Path, data: bytes) -> int:
        nonlocal looks
        write(path, data[:1])
        looks += 1
        if looks == 1:  # as another thread that wants the same now
            assert workdir.keep_wad(content).read_bytes() == content
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", write_slowly)
    path = workdir.keep_wad(content)
    assert path.read_bytes() == content
    assert looks == 2
    path.unlink()
