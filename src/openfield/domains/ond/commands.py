"""The commands of OND alone: `openfield ond visit`, `ond stream` and `ond merge`.

Each reads its options and prints the results; the work is done in `client` and `scoring`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from openfield.console import print_json, print_table
from openfield.options import Whole


def visit(
    server: str,
    /,
    *,
    agent: Annotated[
        list[str] | None, Parameter(name=["--agent", "-a"], consume_multiple=False, metavar="AGENT")
    ] = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False, metavar="KEY=VALUE")] = None,
    trials: Whole | None = None,
    seed: Whole = 0,
    redlight: bool = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")] = None,
    token: Annotated[str | None, Parameter(metavar="SECRET")] = None,
) -> None:
    """Play the tests of a server of the protocol, and print its scores.

    Args:
        server: The address of the server; `here` plays in this process.
        agent: A name, `module:Class(PARAMETER=VALUE, ...)`, or a JSON configuration of the original client. Repeat it
            for further agents. `NAME=AGENT` gives one a name.
        set_: `data` (the data directory; for `here` any samples, as in `run`), `protocol`, `area`, `tests`, `hints`,
            `resume`, `save`, `baseline` and so on; for `here` also settings of the domain. Other keys are parameters
            of all agents.
        trials: The number of tests to play, at most.
        seed: The root of all seeds [0].
        redlight: Ask the server to tell when the world has changed.
        output: The run file, for `here`.
        token: The secret that the server asks for.

    Example:
        openfield ond visit http://HOST:3307 -a knn --set data=DIR
    """
    from openfield.domains.ond.client.visit import play_at_server
    from openfield.registry import find_domain
    from openfield.runner.experiment import parse_settings, read_agents

    changes: dict[str, Any] = {"agents": read_agents(agent) if agent else None, "trials": trials, "seed": seed}
    changes |= {"settings": parse_settings(set_ or []), "redlight": redlight}
    changes |= {} if output is None else {"output": output}
    print_json(play_at_server(find_domain("ond"), server, token, changes))


def stream(file: Path, /, *, seed: Whole = 0, json: bool = False) -> None:
    """Play streams of scored samples with each change detector, and print delays and false alarms.

    Args:
        file: An .npz file with pred, conf and label of samples; label -1 is unknown.
        seed: The root of the draws [0].
        json: Print all numbers as JSON.

    Example:
        openfield ond stream scores.npz --json
    """
    from openfield.domains.ond.scoring.open_set import list_scores, read_named, score_stream

    numbers = score_stream(read_named(file), seed=seed)
    print_json(numbers) if json else print_table(("detector", "number", "value"), list_scores(numbers))


def merge_feature_files(
    files: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], metavar="FILE")],
    pickles: bool = False,
) -> None:
    """Join files of features into one; of samples that are in several files, the last counts.

    Args:
        files: Files written with `--set features=DIR`, or those of the original client.
        output: The .npz file to write.
        pickles: Also read pickles of the original client: arrays and plain values, nothing else.

    Example:
        openfield ond merge a.npz b.npz -o all.npz
    """
    from openfield.domains.ond.client.saved_features import merge_features

    print(f"{merge_features(files, output, pickles):,} samples in {output}")
