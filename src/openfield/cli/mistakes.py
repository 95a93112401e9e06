"""Say in one sentence what is wrong with a command, and what would be right."""

from __future__ import annotations

import difflib
from typing import Any, Literal, NoReturn, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from openfield.errors import InvalidInput, UnknownName

KINDS: dict[Any, str] = {int: "a whole number", float: "a number"}


def explain(error: CycloptsError) -> str:
    """Return what is wrong with the words of a command, as one sentence or two."""
    match error:
        case UnknownOptionError():
            word = (error.token.keyword or error.token.value).partition("=")[0]
            known = [name for argument in error.argument_collection if argument.parse for name in argument.names]
            return f"Unknown option '{word}'.{_suggest(word, known)}"
        case UnknownCommandError() if error.unused_tokens and error.app is not None:
            known = [name for name in error.app if not name.startswith("-")]
            return str(UnknownName("command", error.unused_tokens[0], known, label="Commands"))
        case UnusedCliTokensError():
            return f"There is a word too many: '{(error.unused_tokens or [''])[0]}'."
        case RepeatArgumentError():
            return f"{error.token.keyword} is given more than once."
        case MissingArgumentError() if error.argument is not None:
            return f"{error.keyword} needs a value." if error.keyword else f"{_label(error)} is missing."
        case CoercionError() if error.token is not None:
            return _explain_value(error, error.token.value)
        case ValidationError() if error.argument is not None:
            return f"{_label(error)} cannot be {error.argument.value}. {error.exception_message}"
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def refuse_command(word: str, known: list[str]) -> NoReturn:
    """Refuse a word that is no command; a command of an installed domain is named with the domain."""
    from openfield.capabilities import HasCommands
    from openfield.registry import domain_names, installed_domains

    owners = [each.name for each in installed_domains() if isinstance(each, HasCommands) and word in each.commands]
    if owners:
        raise InvalidInput(f"'{word}' is a command of {owners[0]}: openfield {owners[0]} {word} --help")
    raise UnknownName("command", word, [*known, *domain_names()], label="Commands and domains")


def _explain_value(error: CoercionError, value: str) -> str:
    """Say what an option takes instead of this value."""
    kind = error.target_type
    if get_origin(kind) is Literal:
        choices = [str(choice) for choice in get_args(kind)]
        return f"{_label(error)} is one of {', '.join(choices)}, not '{value}'.{_suggest(value, choices)}"
    if kind not in KINDS and error.msg is not None:
        return f"{_label(error)} takes {error.msg}, not '{value}'."
    return f"{_label(error)} takes {KINDS.get(kind, 'another value')}, not '{value}'."


def _label(error: CycloptsError) -> str:
    """Return the option as it was typed, or the word of the help that a value stands for."""
    argument = error.argument
    if argument is None:
        return "A value"
    typed = next((token.keyword for token in argument.tokens if token.keyword), None)
    if typed is None and argument.field_info.is_positional:
        return argument.name.lstrip("-").upper()
    return typed or argument.name


def _suggest(word: str, known: list[str]) -> str:
    """Suggest the known word that is nearest; the dashes of options do not count as letters in common."""
    letters = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(word.lstrip("-"), letters, n=1)
    return f" Did you mean '{letters[near[0]]}'?" if near else ""
