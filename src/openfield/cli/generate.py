"""`openfield generate`: trials drawn from a domain's own description of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def generate(
    domain: str,
    source: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    levels: Path | None = None,
    seed: int = 0,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
) -> None:
    """Draw trials from a description and write them down.

    Parameters
    ----------
    domain
        A domain's name, `module:attribute` or `file.py`.
    source
        The description, for birds a `configMeta.xml`.
    output
        The file to write; standard output if not given.
    levels
        The folder of levels to draw from [the one that ships].
    seed
        The root of all that is drawn.
    set_
        `key=value`, a setting of the domain; give it again for further settings.
    """
    from openfield.experiment import parse_settings
    from openfield.registry import find_domain
    from openfield.report.files import replacing

    settings = {**({"levels": str(levels)} if levels else {}), **parse_settings(set_ or [])}
    text = find_domain(domain).generate(source, seed, **settings)
    if output is None:
        print(text, end="")
        return
    with replacing(output) as draft:
        draft.write_text(text, encoding="utf-8")
    print(f"{text.count('<trial ')} trials in {output}")
