"""The family `gym:TEXT`: what the text names, and which code the trials of such a domain name.

Plans and readers of run files ask it before anything of Gymnasium is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from openfield.domain import Domain
from openfield.errors import InvalidInput
from openfield.lazy import import_extra
from openfield.parameters import AgentText, read_agent, write_source
from openfield.registry import absolute, names_class, split_family
from openfield.settings import gather_keys
from openfield.trial import Trial, bare_names


class GymFamily:
    """The domains `gym:ID`, with a suite before the environment if there is one: `gym:lab.toml:CartPole-v1`.

    Arguments of what makes the environment stand in brackets behind it, as parameters do behind an agent:
    `gym:my_env.py:make(env_name=Pendulum-v1)`.
    """

    def add_settings(self, text: str, settings: Mapping[str, Any]) -> str:
        """Return the text with the arguments in brackets that settings give what makes the environment.

        A function may make any environment with them. An id stays as it is: the environment is the same. Arguments that
        brackets cannot hold, such as a map of 100,000 fields, are left to the trials.
        """
        from openfield.domains.gym.settings import GymSettings, keep_arguments

        given = gather_keys(GymSettings, settings).get("make")
        suite, made = _split(text)
        if not isinstance(given, Mapping) or not given or not made.place:
            return text
        _check_installed(made.place)
        from openfield.domains.gym.environment import makes_by_id

        if makes_by_id(made.place):
            return text
        kept = keep_arguments(made.place, given)
        try:
            return _join(suite, read_agent(made.give(kept).text).text)
        except InvalidInput:
            return text

    def open_domain(self, text: str) -> Domain[Any]:
        """Return the domain that `gym:TEXT` names."""
        return _open(text)

    def make_absolute(self, text: str) -> str:
        """Return the text as a process in another folder can use it."""
        suite, made = _split(text)
        return _join(suite and str(Path(suite).absolute()), write_source(absolute(made.place), made.parameters))

    def strip_data(self, text: str) -> str:
        """Return the text without its suite, which is data."""
        return split_suite(text)[1]

    def list_code(self, trial: Trial) -> list[str]:
        """Return the wrappers, novelties and environments of a trial that are code of users."""
        found: list[str] = []
        for key in ("wrappers", "novel_wrappers"):
            given = trial.settings.get(key) or ()
            found += map(str, given.split(",") if isinstance(given, str) else given)
        return found + [code for text in _list_changes(trial) if (code := _named_code(text))]


FAMILY = GymFamily()


def split_suite(text: str) -> tuple[str, str]:
    """Return the suite and the environment of a text such as `lab.toml:ID`; no suite for most texts."""
    place, _, rest = text.partition(":")
    return (place, rest) if place.endswith(".toml") else ("", text)


def _split(text: str) -> tuple[str, AgentText]:
    """Return the suite, if there is one, and the environment with its arguments."""
    suite, source = split_suite(text)
    return suite, read_agent(source)


def _join(suite: str, source: str) -> str:
    """Return a suite, if there is one, and an environment as one text."""
    return ":".join(filter(None, (suite, source)))


def _check_installed(name: str) -> None:
    """Check that the optional part is installed that an environment needs."""
    from openfield.domains.gym.suites.suite import find_suite

    known = find_suite(name)
    import_extra("gymnasium", known.extra if known and known.extra else "gym", f"The domain 'gym:{name}'")


@cache
def _open(text: str) -> Domain[Any]:
    """Return the domain that `gym:TEXT` names.

    Raises:
        InvalidInput: The text names no environment.
        MissingExtra: It needs an optional part that is not installed.
    """
    path, made = _split(text)
    name = made.place
    _check_installed(name)
    from openfield.domains.gym.domain import GymDomain
    from openfield.domains.gym.makers import find_maker, name_maker
    from openfield.domains.gym.suites.suite import open_suite

    suite = open_suite(Path(path)) if path else None
    if suite is not None and not name:
        name = next((each for entry in suite.environments for each in entry.ids if not set(each) & set("*?[")), "")
    if not name:
        example = f"{path}:CartPole-v1" if path else "CartPole-v1"
        raise InvalidInput(f"Which environment? Write gym:{f'{path}:' if path else ''}ID, such as gym:{example}.")
    return GymDomain(name, find_maker(name), made.parameters, suite, name_maker(name))


def _list_changes(trial: Trial) -> Iterator[str]:
    """Yield the texts of a trial that may name code: its novelties, their meanings, and another environment."""
    yield from bare_names((*trial.novelty, *(name for phase in trial.phases for name in phase.novelty)))
    suite = trial.settings.get("suite")
    for text in suite.values() if isinstance(suite, dict) else ():
        yield from str(text).split("+")
    if instead := trial.settings.get("instead"):
        yield f"gym:{instead}"


def _named_code(text: str) -> str:
    """Return the code that a novelty names: a class, or an environment that is not found by its id; else nothing."""
    family, name = split_family(text)
    return name if (":" in name and family) or names_class(name) else ""
