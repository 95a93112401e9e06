"""The commands of Birds alone: `openfield birds generate` and `openfield birds import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.console import say_count
from openfield.options import Count, Whole


def generate(
    source: Path | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")] = None,
    levels: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    pool: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    count: Count | None = None,
    seed: Whole = 0,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False, metavar="KEY=VALUE")] = None,
) -> None:
    """Draw trials from a description and write them down, or make more levels to draw from.

    Args:
        source: The description to draw trials from, a `configMeta.xml`.
        output: The `config.xml` to write [standard output].
        levels: The folder of levels to draw from [the one that ships].
        pool: Make more levels in this folder, instead of drawing trials.
        count: How many variations of each template to make with `--pool` [4].
        seed: The root of all seeds [0].
        set_: A setting of the domain. Repeat it for further settings.

    Example:
        openfield birds generate configMeta.xml -o config.xml
    """
    from openfield.domains.birds.files.config import read_meta
    from openfield.domains.birds.files.generation import draw_scripts, write_config
    from openfield.domains.birds.files.templates import write_pool
    from openfield.domains.birds.settings import BirdsSettings
    from openfield.domains.birds.trials import open_pool
    from openfield.errors import InvalidInput
    from openfield.files.atomic import replacing
    from openfield.runner.experiment import parse_settings
    from openfield.settings import make_settings

    if pool is not None:
        if source is not None:
            raise InvalidInput("generate draws from a description or makes levels with --pool. Leave one of them out.")
        print(f"{say_count(len(list(write_pool(pool, count or 4, seed))), 'level')} in {pool}")
        return
    if count is not None:
        raise InvalidInput("--count needs --pool.")
    if source is None:
        raise InvalidInput("generate needs a description to draw from, or --pool DIR to make levels in.")
    settings = {**({"levels": str(levels)} if levels else {}), **parse_settings(set_ or [])}
    chosen = make_settings(BirdsSettings, settings)
    scripts = draw_scripts(read_meta(source), open_pool(chosen), seed, chosen.time_scope)
    if output is None:
        print(write_config(scripts), end="")
        return
    with replacing(output) as draft:
        draft.write_text(write_config(scripts), encoding="utf-8")
    print(f"{say_count(len(scripts), 'trial')} in {output}")


def import_results(
    files: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], metavar="FILE")] = Path("runs/birds-imported.sqlite"),
    agent_name: Annotated[str | None, Parameter(metavar="NAME")] = None,
) -> None:
    """Read results that were played elsewhere into a run file. Report it together with runs of your own.

    Args:
        files: The CSV logs of the original game and published tables, or folders of them.
        output: The run file [runs/birds-imported.sqlite]. Its present cells stay.
        agent_name: The name of the agent that played [the one in the file, else the name of its folder or file].

    Example:
        openfield birds import EvaluationData.csv --agent-name datalab
    """
    from openfield.domains.birds import DOMAIN
    from openfield.domains.birds.files.results import read_results
    from openfield.runner.importing import import_trials

    found = list(read_results(files, agent_name, DOMAIN.version))
    count = import_trials(DOMAIN, found, output)
    agents = ", ".join(dict.fromkeys(each.agent for each in found))
    episodes = sum(len(each.episodes) for each in found)
    known_before = f"; {len(found) - count} were there before" if count < len(found) else ""
    counts = f"{say_count(len(found), 'trial')} with {say_count(episodes, 'episode')}"
    print(f"{counts} of {agents} in {output}{known_before}")
    print(f"Beside a run of your own: openfield report {output} RUN")
