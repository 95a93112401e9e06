"""Parses the options of a domain as the command line does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cyclopts

from openfield.capabilities import HasOptions
from openfield.cli.shared.domain_options import add_options


def parse_options(domain: HasOptions, command: str, words: Sequence[str]) -> Any:
    """Return the options of a domain that these words give to a command."""

    def take(options: Any = None) -> Any:
        return options

    app = cyclopts.App(
        default_command=add_options(take, domain, command),
        default_parameter=cyclopts.Parameter(negative=()),
        print_error=False,
        exit_on_error=False,
    )
    kind = domain.options(command)
    return app(list(words), result_action="return_value") or (kind and kind())
