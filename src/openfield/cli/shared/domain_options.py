"""The options of a domain in a command: parsed and shown with the command's own, turned into changes of the command."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter

from openfield.options import CommandChanges
from openfield.runner.experiment import TrialOptions

if TYPE_CHECKING:
    from cyclopts.argument import Argument

    from openfield.domain import Domain
    from openfield.options import CommandOptions
    from openfield.runner.experiment import Experiment

DomainOptions = Annotated[Any, Parameter(parse=False)]
"""Where a command takes the options of a domain; `add_options` puts the domain's dataclass in its place."""
WITH_FILES = ("run", "play", "plan")
"""The commands that take an experiment file for a domain."""


@dataclass(frozen=True)
class Target:
    """What a command is about: a domain, and the experiment file that names it, which may name several for `run`."""

    domains: tuple[Domain[Any], ...]
    experiment: Experiment
    """What the file says; without one, only the domain."""
    file: Path | None

    @property
    def domain(self) -> Domain[Any]:
        """The domain, or the first one."""
        return self.domains[0]

    @property
    def name(self) -> str:
        """What its run file is called: the domain, or the experiment file that names several."""
        return self.domain.name if self.file is None or not self.experiment.domains else self.file.stem


DomainTarget = Annotated[Target | None, Parameter(parse=False)]
"""The target of a command, already found when its words were read."""


def read_target(app: App, words: list[str]) -> Target | None:
    """Return what the words of a command name, or None if they name neither a domain nor an experiment file."""
    if not words[1:]:
        return None
    if words[0] == "score":  # takes folders otherwise
        from openfield.registry import domain_names

        return find_target(words[0], words[1]) if words[1] in domain_names() else None
    read: dict[str, Any] = {}
    with suppress(CycloptsError):  # the error is reported when the words are parsed
        read = app.parse_known_args(words[1:])[1].arguments
    name = read.get("domain")
    if name is None or name.endswith(".sqlite"):
        return None
    return find_target(words[0], name, next((each for each in read.values() if isinstance(each, TrialOptions)), None))


def find_target(command: str, name: str, options: TrialOptions | None = None) -> Target:
    """Return the target that a word names: a domain, or an experiment file if the command takes one.

    Args:
        command: The command.
        name: The word.
        options: Options of the trials, whose settings may decide which domain it is.
    """
    from openfield.errors import InvalidInput
    from openfield.registry import find_domain
    from openfield.runner.experiment import make_experiment, names_experiment, read_experiment

    file = Path(name) if names_experiment(name) else None
    if file is not None and command not in WITH_FILES:
        raise InvalidInput(f"`openfield {command}` takes a domain, not an experiment file: name the domain of {name}.")
    experiment = make_experiment({"domain": name}) if file is None else read_experiment(file)
    given = {} if options is None or not options.settings else {"settings": options.settings}
    parts = experiment.change(given).split()
    if len(parts) > 1 and command not in ("run", "plan"):
        raise InvalidInput(f"{name} names {len(parts)} domains, and `openfield {command}` takes one. Name it instead.")
    return Target(tuple(find_domain(part.domain, part.settings) for part in parts), experiment, file)


def add_options(command: Callable[..., Any], domain: Domain[Any] | None, name: str, **fixed: Any) -> Callable[..., Any]:
    """Return the function of a command with the options of a domain in its signature, if there are any.

    Args:
        command: The function.
        domain: The domain; None for several.
        name: The name of the command.
        **fixed: Arguments beside those that are parsed.
    """

    @functools.wraps(command)
    def extended(*args: Any, **options: Any) -> Any:
        return command(*args, **options, **fixed)

    kind = None if domain is None else find_options(domain, name)
    if domain is None or kind is None:
        return extended
    annotated: Any = Annotated
    parameter = annotated[kind, Parameter(name="*", group=Group(name_group(domain), sort_key=5))]
    hints = {**get_type_hints(command, include_extras=True), "options": parameter}
    signature = inspect.signature(command)
    changed = [
        each.replace(annotation=parameter, default=kind()) if each.name == "options" else each
        for each in signature.parameters.values()
    ]
    extended.__annotations__ = hints
    extended.__dict__["__signature__"] = signature.replace(parameters=changed)
    if "Example:" in (kind.__doc__ or ""):
        text = (command.__doc__ or "").partition("Example:")[0]
        example = "".join((kind.__doc__ or "").partition("Example:")[1:])
        extended.__doc__ = text + example.replace("COMMAND", name)
    return extended


def name_group(domain: Domain[Any]) -> str:
    """Return the title that help has for the options of a domain."""
    return f"Options of {domain.name}"


def describe_options(domain: Domain[Any], command: str) -> list[tuple[str, str]]:
    """Return how each option of a domain is typed in a command, and its effect."""

    def take(options: DomainOptions = None) -> None: ...

    app = App(default_command=add_options(take, domain, command), default_parameter=Parameter(negative=()))
    arguments = [each for each in app.assemble_argument_collection(parse_docstring=True) if each.parse and each.show]
    return [(_describe_usage(each), each.parameter.help or "") for each in arguments]


def _describe_usage(argument: Argument) -> str:
    if argument.field_info.is_positional:
        return argument.name.lstrip("-")
    return f"{', '.join(sorted(argument.names, key=len))} {argument.parameter.metavar or ''}".strip()


def prepare_changes(domain: Domain[Any], command: str, options: Any) -> CommandChanges:
    """Return what the options of a domain change in a command, and print what the user should know of it."""
    kind = find_options(domain, command)
    if kind is None:
        return CommandChanges()
    changes: CommandChanges = (options or kind()).prepare()
    if changes.notice:
        print(changes.notice, file=sys.stderr, flush=True)
    return changes


def find_options(domain: Domain[Any], command: str) -> type[CommandOptions] | None:
    """Return the dataclass of options that a domain has for a command, if any."""
    from openfield.capabilities import HasOptions

    kind = domain.options(command) if isinstance(domain, HasOptions) else None
    return None if command == "score" and not hasattr(kind, "score") else kind  # others are about playing
