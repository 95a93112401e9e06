from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield import registry
from openfield.agents.random import RandomAgent
from openfield.core import Reply, Spec, Turn
from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.catalogue import installed_metrics
from openfield.registry import PluginWarning, agent_names, domain_source, find_agent, find_domain, load
from support import players
from support.players import Learner, copycat
from support.worlds import TINY, Tiny

SPEC = Spec(domain="tiny", task="Answer.", actions=of.spaces.Discrete(2))
TURN = Turn(observation={"cue": 1})


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_domains", {})
    registry.find_entry_points.cache_clear()
    yield
    registry.find_entry_points.cache_clear()


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs entry points that are not there."""

    def install(group: str, **values: str) -> None:
        real = registry.installed_points

        def fake(wanted: str) -> Any:
            if wanted == group:
                return [EntryPoint(name, value, group) for name, value in values.items()]
            return real(wanted)

        monkeypatch.setattr(registry, "installed_points", fake)

    return install


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Writes a module into the working directory."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules), list(sys.path)

    def write(code: str, name: str = "plugin_under_test.py") -> str:
        (tmp_path / name).write_text(code)
        return name

    yield write
    for name in set(sys.modules) - before[0]:
        if "under_test" in name:
            del sys.modules[name]
    sys.path[:] = before[1]


# domains


def test_domains_are_found_by_name_path_and_file(plugins: Any, maze: of.Domain[Any]) -> None:
    assert find_domain("support.worlds:TINY") is TINY
    assert find_domain("tiny") is TINY
    assert domain_source("tiny") == "support.worlds:TINY"
    assert find_domain("support.worlds:Tiny").name == "tiny"
    assert (maze.name, find_domain("maze")) == ("maze", maze)
    plugins("openfield.domains", toy="support.worlds:TINY")
    assert find_domain("toy") is TINY


def test_a_file_imports_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "lies_beside.py").write_text("from support.worlds import TINY as MINE\n")
    (tmp_path / "importing.py").write_text("from lies_beside import MINE\n")
    assert find_domain(f"{tmp_path}/importing.py:MINE") is TINY


def test_a_domain_object_is_known_by_where_another_process_finds_it() -> None:
    of.trials(TINY, 1, unchanged=0)
    assert domain_source("tiny") == "support.worlds:TINY"
    registry.use_domain(Tiny())
    assert domain_source("tiny") == "support.worlds:TINY"
    assert domain_source("unknown") == "unknown"


def test_an_unknown_domain_suggests_the_nearest(plugins: Any) -> None:
    plugins("openfield.domains", doom="support.worlds:TINY", birds="support.worlds:TINY")
    with pytest.raises(UnknownName) as told:
        find_domain("dom")
    assert str(told.value) == "Unknown domain 'dom'. Did you mean 'doom'? Installed: birds, doom."
    with pytest.raises(UnknownName) as told:
        find_domain("zzz")
    assert str(told.value) == "Unknown domain 'zzz'. Installed: birds, doom."


def test_what_is_no_domain_is_refused(module: Any) -> None:
    with pytest.raises(InvalidInput, match=r"'support\.worlds:FAR' is a Truth, not a Domain"):
        find_domain("support.worlds:FAR")
    with pytest.raises(InvalidInput, match=r"holds 0 domains; name one: plugin_under_test\.py:NAME"):
        find_domain(module("x = 1"))
    two = "from support.worlds import Tiny\na, b = Tiny(), Tiny()"
    with pytest.raises(
        InvalidInput, match=r"holds 2 domains; name one: \S*two_under_test\.py:a, \S*two_under_test\.py:b\.$"
    ):
        find_domain(module(two, "two_under_test.py"))
    assert find_domain("two_under_test.py:b").name == "tiny"


def test_a_broken_plugin_is_a_warning_that_names_it(plugins: Any, module: Any) -> None:
    module("import no_such_thing_at_all")
    plugins(
        "openfield.domains",
        good="support.worlds:TINY",
        broken="plugin_under_test:DOMAIN",
        gone="support.worlds:NOWHERE",
    )
    with pytest.warns(PluginWarning) as warned:
        found = registry.installed_domains()
    assert found == [TINY]
    broken, gone = (str(warning.message) for warning in warned)
    assert broken == (
        "The domain 'broken' cannot be used: 'plugin_under_test:DOMAIN' cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_thing_at_all' (line 1)"
    )
    assert gone.startswith("The domain 'gone' cannot be used: Unknown name 'NOWHERE'.")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(7)", "cannot be imported: SystemExit: 7"),
        ("class DOMAIN:\n    def __init__(self): raise KeyError('x')", "cannot be made: KeyError: 'x'"),
        ("DOMAIN = 'domain'", "is a str, not a Domain"),
    ],
)
def test_a_plugin_may_be_broken_in_any_way(plugins: Any, module: Any, code: str, words: str) -> None:
    module(code)
    plugins("openfield.domains", broken="plugin_under_test:DOMAIN")
    with pytest.warns(PluginWarning, match=f"The domain 'broken' cannot be used: .*{words}"):
        assert registry.installed_domains() == []


def test_a_plugin_cannot_take_a_name_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("random", f"{place}:RandomAgent", "g") for place in ("support.players", "openfield.agents.random")
    ]
    monkeypatch.setattr(registry, "installed_points", lambda group: points)
    with pytest.warns(
        PluginWarning, match="taken by openfield.agents.random:RandomAgent; support.players:RandomAgent is not"
    ):
        assert list(registry.installed_agents()) == ["random"]


def test_metrics_are_the_built_in_ones_and_those_of_plugins(plugins: Any) -> None:
    from openfield.metrics import BUILT_IN
    from openfield.metrics.performance import PERFORMANCE

    good = "openfield.metrics.performance:PERFORMANCE"
    plugins("openfield.metrics", extra=good, broken="no_such_module:M", other="support.worlds:FAR")
    with pytest.warns(PluginWarning) as warned:
        found = installed_metrics()
    assert found == [*BUILT_IN, PERFORMANCE]
    broken, other = (str(warning.message) for warning in warned)
    assert broken.startswith("The metric 'broken' cannot be used")
    assert other == "The metric 'other' cannot be used: 'support.worlds:FAR' is a Truth, not a Metric."


def test_agents_of_plugins_are_loaded_to_be_listed(plugins: Any) -> None:
    plugins("openfield.agents", good="support.players:Learner", broken="no_such_module:A")
    with pytest.warns(PluginWarning, match="The agent 'broken' cannot be used"):
        assert registry.installed_agents() == {"good": players.Learner}


# agents


def test_agents_are_found_in_every_form(module: Any) -> None:
    module("from support.players import Learner, copycat\nclass Nest:\n    Egg = Learner")
    function: Any = find_agent(copycat, TINY)(SPEC, 1)
    assert function(TURN) == Reply(1)
    for source in (
        Learner,
        lambda spec, seed: Learner(spec, seed),
        "support.players:Learner",
        "plugin_under_test:Nest.Egg",
        "plugin_under_test.py:Learner",
    ):
        made: Any = find_agent(source, TINY)(SPEC, 5)
        assert made.rng.random() == Learner(SPEC, 5).rng.random()
    for source in ("support.players:copycat", "plugin_under_test.py:copycat"):
        assert find_agent(source, TINY)(SPEC, 5)(TURN) == Reply(1)
    assert isinstance(find_agent("random", TINY)(SPEC, 5), RandomAgent)


def test_every_cell_gets_its_own_copy_of_an_instance() -> None:
    original = Learner(SPEC, 5)
    factory = find_agent(original, TINY)
    one, other = factory(SPEC, 1), factory(SPEC, 2)
    assert len({id(original), id(one), id(other)}) == 3
    one(TURN)
    assert other(TURN) == Learner(SPEC, 5)(TURN)


def test_a_domain_brings_agents_of_its_own(maze: of.Domain[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert agent_names(maze) == ["compass", "random"]
    assert agent_names() == ["random"]
    assert find_agent("compass", maze) is maze.agents["compass"]
    monkeypatch.setattr(Tiny, "agents", {"late": "support.players:copycat"})
    assert find_agent("late", TINY)(SPEC, 0)(TURN) == Reply(1)


def test_an_unknown_agent_suggests_the_nearest(maze: of.Domain[Any]) -> None:
    with pytest.raises(UnknownName) as told:
        find_agent("compas", maze)
    assert str(told.value) == "Unknown agent 'compas'. Did you mean 'compass'? For maze: compass, random."
    with pytest.raises(UnknownName, match=r"Unknown name 'Lerner'\. Did you mean"):
        find_agent("support.players:Lerner", maze)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_thing_at_all", "ModuleNotFoundError: No module named 'no_such_thing_at_all' (line 1)"),
        ("def broken(:", "SyntaxError: invalid syntax (plugin_under_test.py, line 1: def broken(:)"),
        ("raise RuntimeError('first\\nsecond')", "second (line 1)"),
        ("{}['key']", "KeyError: 'key' (line 1)"),
    ],
)
def test_an_import_error_shows_the_last_line_every_time(module: Any, code: str, reason: str) -> None:
    file = module(code)
    for source in (f"{file}:Agent", f"{file}:Agent", "plugin_under_test:Agent"):
        with pytest.raises(InvalidInput) as told:
            find_agent(source, TINY)
        assert f"'{source}' cannot be imported: " in str(told.value)
        assert str(told.value).endswith(reason)


def test_files_and_things_that_are_no_agents_are_refused(module: Any) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be imported: no such file: nowhere\.py"):
        load("nowhere.py:Agent")
    with pytest.raises(InvalidInput, match="An agent must be callable; 10 is not"):
        find_agent("support.players:FATAL_CALL", TINY)
    assert players.FATAL_CALL == 10


def test_two_files_of_one_name_are_two_modules(module: Any, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one, other = module("X = 1"), module("X = 2", "other/plugin_under_test.py")
    assert (load(f"{one}:X"), load(f"{other}:X"), load(f"{one}:X")) == (1, 2, 1)
