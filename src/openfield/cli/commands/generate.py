"""`openfield generate`: draw trials from a description of the domain, or make more levels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.parameters import Output, Settings
from openfield.console import say_count
from openfield.options import Count, Whole


def generate(
    domain: str,
    source: Path | None = None,
    /,
    *,
    output: Output = None,
    levels: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    pool: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    count: Count | None = None,
    seed: Whole = 0,
    set_: Settings = None,
) -> None:
    """Draw trials from a description and write them down, or make more levels to draw from.

    Args:
        domain: A domain's name, `module:attribute` or `file.py`.
        source: The description to draw trials from; for birds a `configMeta.xml`.
        output: The file to write [standard output].
        levels: The folder of levels to draw from [the one that ships].
        pool: Make more levels in this folder, instead of drawing trials.
        count: How many variations of each template to make with `--pool` [4].
        seed: The root of all seeds [0].
        set_: A setting of the domain. Repeat it for further settings.

    Example:
        openfield generate birds configMeta.xml -o config.xml
    """
    from openfield.capabilities import FillsPool, GeneratesTrials
    from openfield.errors import InvalidInput
    from openfield.files.atomic import replacing
    from openfield.registry import find_domain
    from openfield.runner.experiment import parse_settings

    known = find_domain(domain)
    if pool is not None:
        if source is not None:
            raise InvalidInput("generate draws from a description or makes levels with --pool. Leave one of them out.")
        if not isinstance(known, FillsPool):
            raise InvalidInput(f"{known.name} has no levels to make more of.")
        print(f"{say_count(len(list(known.fill_pool(pool, count or 4, seed))), 'level')} in {pool}")
        return
    if count is not None:
        raise InvalidInput("--count needs --pool.")
    if source is None:
        raise InvalidInput("generate needs a description to draw from, or --pool DIR to make levels in.")
    settings = {**({"levels": str(levels)} if levels else {}), **parse_settings(set_ or [])}
    if not isinstance(known, GeneratesTrials):
        raise InvalidInput(f"{known.name} has no descriptions to generate trials from.")
    text = known.generate(source, seed, **settings)
    if output is None:
        print(text, end="")
        return
    with replacing(output) as draft:
        draft.write_text(text, encoding="utf-8")
    count = text.count("<trial ")
    print(f"{count} trial{'' if count == 1 else 's'} in {output}")
