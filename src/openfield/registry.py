"""Find domains and agents: installed ones by name, others as `module:attribute` or `file.py:attribute`.

An agent may have parameters in brackets, `file.py:Net(temperature=0.5)`; they are given to whatever makes it.
The first thing a plan needs. A broken plugin is a warning that names it, never a crash.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy, deepcopy
from functools import cache, partial
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from openfield.capabilities import AdaptsAgents, Family
from openfield.core import AgentFactory, ChecksSpec, ChecksTrial
from openfield.domain import spec_of
from openfield.errors import InvalidInput, MissingExtra, OpenfieldError, UnknownName
from openfield.files.near import suggest_file
from openfield.lazy import import_extra
from openfield.parameters import (
    CONTROL,
    DETECTORS,
    LLM,
    MODELS,
    RIVER,
    RIVER_DETECTORS,
    AgentText,
    is_control,
    make_agent_text,
    read_agent,
)

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.trial import Trial

PROCESS_AGENT, WIRE_AGENTS = "openfield.agents.program:process_agent", "openfield.agents.legacy"
__all__ = ["find_agent", "find_domain"]

FIND_CONTROL = "openfield.agents.controls:find_control"
"""Where agents in other programs and controls are found. They are named as text: agents stand above the registry."""
MODEL_AGENTS = {"onnx": "openfield.agents.onnx:onnx_agent", "sb3": "openfield.agents.sb3:sb3_agent"}
"""Where agents are made from the files of trained models, by what their sources begin with."""
LANGUAGE_MODEL = "openfield.agents.llm:llm_agent"
"""Where `llm:MODEL` is made."""
WITH_DETECTOR = "openfield.agents.detectors:with_detector"
"""Where an agent gets a detector that states its beliefs."""
CONTROLS = ("counter", "alarmist", "doubter", "quitter", "sleeper", "peeker", "enumerator", "buyer", "scout")
"""Agents that must fail, found by name in every domain that has no agent of this name."""
AgentSource = str | AgentText | Callable[..., Any]
"""The forms in which an agent may be given: a name, a dotted name, a command, a function, a class or a factory."""

_domains: dict[str, tuple[Domain[Any], str]] = {}
"""Domains in use by name, each with the source another process finds it by, or an empty text."""
_former: dict[str, tuple[Domain[Any], str]] = {}
"""The same by their former names, which older trials have."""


class PluginWarning(UserWarning):
    """A plugin could not be used."""


def find_domain(source: str, settings: Mapping[str, Any] | None = None) -> Domain[Any]:
    """Return the domain of this name, at `package.module:attribute` or `file.py:attribute`, or alone in `file.py`.

    `PREFIX:TEXT` is a domain of a family, such as `gym:CartPole-v1`.

    Args:
        source: The name or place.
        settings: Settings of the trials to come: which domain of a family it is may depend on them.
    """
    if (known := _find_known(source)) is not None:
        return known[0]
    prefix, text = split_family(source)
    if prefix:
        family = find_family(prefix)
        text = family.add_settings(text, settings) if settings else text
        return use_domain(family.open_domain(text), absolute(f"{prefix}:{text}"))
    if ":" in source or source.endswith(".py"):
        return use_domain(_load_domain(source), source)
    points = find_entry_points("openfield.domains")
    if source not in points:
        raise UnknownName("domain", source, domain_names())
    return use_domain(_made(load(points[source].value), source), source)


def split_family(source: str) -> tuple[str, str]:
    """Return the family of a domain's source and the text after its prefix; an empty family for other sources."""
    family, colon, text = source.partition(":")
    return (family, text) if colon and family in find_entry_points("openfield.families") else ("", source)


def find_family(name: str) -> Family:
    """Return a family of domains by its prefix."""
    return load(find_entry_points("openfield.families")[name].value)  # type: ignore[no-any-return]


def names_class(text: str) -> bool:
    """Return whether a text names a class as `file.py:NAME` or `package.module:NAME`; a difficulty is not one."""
    place, colon, name = text.partition(":")
    dotted = place.endswith(".py") or ("." in place and all(part.isidentifier() for part in place.split(".")))
    return bool(colon) and dotted and name.isidentifier()


def list_trial_code(trials: Iterable[Trial]) -> list[str]:
    """Return the code that trials name, as their domain or its family says."""

    @cache  # there may be a million trials
    def find_namer(name: str) -> Family | Domain[Any] | None:
        family = name.partition("-")[0]
        if name not in find_entry_points("openfield.domains") and family in find_entry_points("openfield.families"):
            return find_family(family)
        return known_domain(name) if name in domain_names() else None

    return sorted({code for trial in trials if (namer := find_namer(trial.domain)) for code in namer.list_code(trial)})


def known_domain(name: str, source: str = "") -> Domain[Any]:
    """Return the domain of this name if it is in use here or installed. Nothing that a file names is imported.

    Args:
        name: The domain's name.
        source: Where a run file says that it is found. Another domain of the same name is not meant.

    Raises:
        UnknownName: It is neither.
    """
    if name not in (*domain_names(), *_former) or source not in ("", name, absolute(domain_source(name))):
        raise UnknownName("domain", name, domain_names())
    known = _find_known(name)
    return find_domain(name) if known is None else known[0]


def use_domain(domain: Domain[Any], source: str = "") -> Domain[Any]:
    """Make a domain known by its name in this process; `source` is how another process finds it.

    Without a source, one of a class without arguments keeps the source of an earlier one: the two cannot differ. Any
    other could, and another process would play what is found at that source.
    """
    known, place = _domains.get(domain.name, (None, ""))
    same = known is domain or (type(known) is type(domain) and not inspect.signature(type(domain)).parameters)
    found = source or (place if same else "") or _importable(domain)
    _domains[domain.name] = domain, found
    for name in domain.former_names:
        former = copy(domain)
        former.name, former.former_names = name, ()
        _former[name] = former, found
    return domain


def use_recorded(source: str, name: str) -> Domain[Any]:
    """Return the domain at a source, under the name that recorded trials have; it may be a former one."""
    domain = find_domain(source)
    return use_domain(*_former[name]) if name in domain.former_names else domain


def _find_known(name: str) -> tuple[Domain[Any], str] | None:
    """Return the domain in use that has this name, or had it, and its source."""
    return _domains.get(name) or _former.get(name)


def domain_source(name: str) -> str:
    """Return how another process finds a domain known here; empty if it cannot."""
    known = _find_known(name)
    return name if known is None else known[1]


def domain_names() -> list[str]:
    """Return the names of all domains that are installed or in use, without loading one."""
    return sorted({*find_entry_points("openfield.domains"), *_domains})


def installed_domains() -> list[Domain[Any]]:
    """Return all installed domains. One that cannot be loaded is a warning."""
    return list(load_all(find_entry_points("openfield.domains"), find_domain, "domain"))


def agent_names(domain: Domain[Any] | None = None) -> list[str]:
    """Return the names of all agents but controls; with a domain, also of those that come with it."""
    return sorted({*find_entry_points("openfield.agents"), *(domain.agents if domain else ())})


def name_control(agent: AgentText, domain: Domain[Any]) -> AgentText:
    """Return an agent as plans keep it: the text of a control says that it is one, whatever its name."""
    if agent.detector or agent.place in domain.agents or agent.place in find_entry_points("openfield.agents"):
        return agent
    if agent.text.partition(":")[0] not in CONTROLS:
        return agent
    return make_agent_text(f"{CONTROL}{agent.text}", {})


def find_agent(source: AgentSource, domain: Domain[Any]) -> AgentFactory:
    """Return the factory of an agent, however the agent was named."""
    agent = read_agent(source)
    if not isinstance(agent, AgentText):
        found, parameters = _strip_partial(agent)
        return _adapt(found, domain, parameters)
    if agent.detector is not None:
        return _find_with_detector(agent.player, agent.detector, domain)
    plain, parameters = agent.place, dict(agent.parameters)
    if plain.startswith("process:"):
        start: Callable[[str], AgentFactory] = load(PROCESS_AGENT)
        return start(plain.removeprefix("process:"))
    if plain.startswith("wire:"):
        raise InvalidInput(f"'{plain}' speaks a domain's own protocol: it can have no detector.")
    if is_control(name := name_control(agent, domain).text):
        find: Callable[[str, Domain[Any]], AgentFactory] = load(FIND_CONTROL)
        return find(name.removeprefix(CONTROL), domain)
    if plain.startswith(MODELS):
        return _find_model(plain, parameters)
    if plain.startswith(LLM):
        talk: Callable[..., AgentFactory] = load(LANGUAGE_MODEL)
        return talk(plain.removeprefix(LLM), domain, **parameters)
    if plain in domain.agents:
        built_in = domain.agents[plain]
        return _as_factory(load(built_in) if isinstance(built_in, str) else built_in, parameters)
    points = find_entry_points("openfield.agents")
    if plain in points:
        return _as_factory(load(points[plain].value), parameters)
    player, plus, detector = plain.rpartition("+")
    if plus and player in agent_names(domain):
        raise UnknownName("detector", detector, [*DETECTORS, *RIVER_DETECTORS, f"{RIVER}NAME"], label="Known")
    if ":" in plain:
        return _adapt(load(plain, domain), domain, parameters)
    if plain.endswith(".py"):
        raise InvalidInput(f"Which agent of {plain}? Write {plain}:NAME.")
    raise UnknownName("agent", plain, agent_names(domain), label=f"For {domain.name}")


def _find_with_detector(player: AgentText, detector: AgentText, domain: Domain[Any]) -> AgentFactory:
    """Return the factory of agents whose beliefs a detector states."""
    if is_control(name_control(player, domain).text):
        raise InvalidInput(f"'{player}' is a control, which states a belief of its own: it takes no detector.")
    wrap: Callable[..., AgentFactory] = load(WITH_DETECTOR)
    found = wrap(player, detector)
    find_agent(player, domain)
    return found


def _find_model(place: str, parameters: Mapping[str, Any]) -> AgentFactory:
    """Return the factory of agents that play with a trained model."""
    kind, _, file = place.partition(":")
    make: Callable[..., AgentFactory] = load(MODEL_AGENTS[kind])
    check_parameters(make, parameters, taken=1)
    return make(file, **parameters)


def check_agent_source(source: AgentSource, domain: Domain[Any], trial: Trial | None = None) -> AgentFactory | None:
    """Check that an agent can be found, and that a trained policy fits a trial, before anything starts.

    Returns:
        Its factory; None for a program that speaks a wire.
    """
    agent = read_agent(source)
    if isinstance(agent, AgentText) and agent.text.startswith("wire:") and not agent.detector:
        load(f"{WIRE_AGENTS}:check_program")(agent.text, domain)
        return None
    factory = find_agent(agent, domain)
    if trial is not None and isinstance(factory, ChecksSpec):
        factory.check_spec(spec_of(domain, trial))
    if trial is not None and isinstance(factory, ChecksTrial):
        factory.check_trial(trial)
    return factory


def check_extra(domain: Domain[Any]) -> None:
    """Check that the optional part a domain needs is installed."""
    with warnings.catch_warnings():  # some engines warn in ways that crash an interpreter which makes them errors
        warnings.simplefilter("ignore")
        for name in domain.modules:
            import_extra(name, domain.extra, f"The domain '{domain.name}'")


def find_missing_extra(domain: Domain[Any]) -> str:
    """Return the optional part that a domain needs and that is not installed, or an empty text."""
    return domain.extra if any(importlib.util.find_spec(name) is None for name in domain.modules) else ""


def installed_agents() -> dict[str, Any]:
    """Return the agents for any domain by name, as they are written. One that cannot be loaded is a warning."""
    points = find_entry_points("openfield.agents")

    def find(name: str) -> tuple[str, Any]:
        found = load(points[name].value)
        _as_factory(found, {})
        return name, found

    return dict(sorted(load_all(points, find, "agent")))


def describe_agent(source: Any) -> str:
    """Return what an agent does, from the first paragraph of its docstring; empty without one.

    Args:
        source: The class or function, or where it is. One whose optional part is missing says which that is.
    """
    try:
        found = load(source) if isinstance(source, str) else source
    except OpenfieldError as error:
        return str(error)
    text = " ".join((inspect.getdoc(_strip_partial(found)[0]) or "").partition("\n\n")[0].split())
    made = text.removeprefix("Make ")
    return made[:1].upper() + made[1:]


def load(source: str, importer: Domain[Any] | None = None) -> Any:
    """Return the object at `package.module:attribute` or `file.py:attribute`; an importer imports its module."""
    place, _, attribute = source.partition(":")
    module = _import(place, source, importer)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [name for name, value in vars(found).items() if _is_own(value, module) and not name.startswith("_")]
            raise UnknownName("name", part, names, label=f"In {place}")
        found = getattr(found, part)
    return found


def _is_own(value: Any, module: ModuleType) -> bool:
    """Return whether something callable is defined in a module, and not imported there."""
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _load_domain(source: str) -> Domain[Any]:
    from openfield.domain import Domain

    if ":" in source:
        return _made(load(source), source)
    found = {name: value for name, value in vars(_import(source, source)).items() if isinstance(value, Domain)}
    if len(found) != 1:
        names = ", ".join(f"{source}:{name}" for name in found) or f"{source}:NAME"
        raise InvalidInput(f"{source} holds {len(found)} domains; name one: {names}.")
    return next(iter(found.values()))


def _made(found: Any, source: str) -> Domain[Any]:
    from openfield.domain import Domain

    try:
        domain = found() if isinstance(found, type) else found
    except Exception as error:
        raise InvalidInput(f"'{source}' cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(domain, Domain):
        raise InvalidInput(f"'{source}' is a {type(domain).__name__}, not a Domain.")
    return domain


def _importable(domain: Domain[Any]) -> str:
    """Return `module:attribute` of a domain that is a module's global, or nothing."""
    module = sys.modules.get(type(domain).__module__)
    if module is None or module.__name__ == "__main__":
        return ""
    names = [name for name, value in vars(module).items() if value is domain]
    return f"{module.__name__}:{names[0]}" if names else ""


def _adapt(found: Any, domain: Domain[Any], parameters: Mapping[str, Any]) -> AgentFactory:
    """Return a factory for the agent that a user named: the domain's own kind of agent, or ours."""
    adapted = domain.adapt(found, parameters) if isinstance(domain, AdaptsAgents) else None
    return adapted or _as_factory(found, parameters)


def _strip_partial(found: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return a class or factory without the parameters that `with_parameters` gave it, and these."""
    parameters: dict[str, Any] = {}
    while isinstance(found, partial) and not found.args:
        parameters = found.keywords | parameters
        found = found.func
    return found, parameters


def _as_factory(found: Any, parameters: Mapping[str, Any]) -> AgentFactory:
    """Return a factory: a class or a function of two parameters is one, a function of one is the agent itself."""
    if not callable(found):
        raise InvalidInput(f"An agent must be callable; {found!r} is not.")
    if parameters:
        check_parameters(found, parameters)
    bound: Any = partial(found, **parameters) if parameters else found
    if inspect.isclass(found) or _positional(found) != 1:
        _check_factory(bound, found)
        if bound is not found and hasattr(found, "stateless"):
            bound.stateless = found.stateless
        return bound  # type: ignore[no-any-return]
    if inspect.isroutine(found):
        return lambda spec, seed: bound
    return lambda spec, seed: deepcopy(bound)


def check_parameters(found: Callable[..., Any], parameters: Mapping[str, Any], taken: int = 2) -> None:
    """Refuse parameters that something does not take, as far as its signature shows.

    Args:
        found: The function or class to call with them.
        parameters: The parameters.
        taken: How many of its own it is given by position: an agent's spec and seed, or its turn.

    Raises:
        UnknownName: It has no parameter of such a name.
    """
    try:
        own = list(inspect.signature(found).parameters.values())
    except ValueError:
        return
    if any(each.kind is each.VAR_KEYWORD for each in own):
        return
    by_position = [each.name for each in own if each.default is each.empty and each.kind is not each.KEYWORD_ONLY]
    known = [each.name for each in own if each.name not in by_position[:taken] and each.kind is not each.VAR_POSITIONAL]
    for name in parameters:
        if name not in known:
            raise UnknownName("parameter", name, known, label=f"{getattr(found, '__name__', 'The agent')} takes")


def _check_factory(bound: Callable[..., Any], found: Callable[..., Any]) -> None:
    """Check that something with its parameters can be called with a spec and a seed, as far as its signature shows."""
    try:
        inspect.signature(bound).bind(None, 0)
    except ValueError:
        return
    except TypeError as error:
        name = getattr(found, "__qualname__", repr(found))
        raise InvalidInput(
            f"'{name}' is not an agent: {error}. A class or factory takes (spec, seed), a function that answers (turn)."
        ) from None


def _positional(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


@cache  # they are installed, and do not change while a program runs
def find_entry_points(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name. A plugin cannot take a name of ours."""
    points: dict[str, EntryPoint] = {}
    for point in sorted(installed_points(group), key=lambda point: not point.value.startswith("openfield.")):
        if points.setdefault(point.name, point).value != point.value:
            taken = f"The name '{point.name}' in {group} is taken by {points[point.name].value}"
            warnings.warn(f"{taken}; {point.value} is not used.", PluginWarning, stacklevel=2)
    return points


_all_points = cache(entry_points)
"""The entry points of all installed packages. To look through them takes 17 ms, so it is done once."""


def installed_points(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    return _all_points().select(group=group)


def load_all(names: Iterable[str], find: Callable[[str], Any], kind: str) -> Iterator[Any]:
    """Yield the object found under each name, and warn of those that cannot be loaded."""
    for name in names:
        try:
            yield find(name)
        except OpenfieldError as error:
            warnings.warn(f"The {kind} '{name}' cannot be used: {error}", PluginWarning, stacklevel=3)


def _import(place: str, source: str, importer: Domain[Any] | None = None) -> ModuleType:
    """Import a module by name, as if started in the working directory, or a file by its path."""
    try:
        if place.endswith(".py"):
            return _import_file(Path(place), importer)
        add_working_folder()
        return importlib.import_module(place) if importer is None else importer.import_module(place)
    except MissingExtra:  # it says itself what to install
        raise
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"'{source}' cannot be imported: {_explain_import(place, error)}") from error


def _explain_import(place: str, error: BaseException) -> str:
    """Return why a module cannot be imported, with the line that is wrong, or the file that was probably meant."""
    reason = traceback.format_exception_only(error)[-1].strip().splitlines()[-1]
    if isinstance(error, SyntaxError):
        line = " ".join((error.text or "").split())
        shown = f": {line}" if line else ""
        return f"{reason} ({Path(error.filename or place).name}, line {error.lineno}{shown})"
    if isinstance(error, FileNotFoundError) and place.endswith(".py") and not Path(place).exists():
        return f"no such file: {place}.{suggest_file(Path(place))}"
    file = str(Path(place).resolve() if place.endswith(".py") else Path(*place.split(".")).with_suffix(".py"))
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(file)]
    return f"{reason} (line {own[-1].lineno})" if own else reason


def add_working_folder() -> None:
    """Let modules be found in the working directory, unless that was removed."""
    with suppress(FileNotFoundError):
        here = str(Path.cwd())
        if "" not in sys.path and here not in sys.path:
            sys.path.insert(0, here)


def absolute(source: str) -> str:
    """Return the source of a domain or agent as a process in another folder can use it."""
    family, text = split_family(source)
    if family:
        return f"{family}:{find_family(family).make_absolute(text)}"
    place, colon, attribute = source.partition(":")
    return f"{Path(place).absolute()}{colon}{attribute}" if place.endswith(".py") else source


def _import_file(path: Path, importer: Domain[Any] | None = None) -> ModuleType:
    if not path.is_file() and Path(path.name).is_file():  # a run and its files may have moved together
        path = Path(path.name)
    name = f"openfield_file_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path.resolve()):
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if (beside := str(path.resolve().parent)) not in sys.path:
        sys.path.append(beside)  # what lies beside a file can be imported by it, as if it was started as a program
    if importer is not None:
        importer.prepare_module(module)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
