"""The options of the original game, for `openfield run`, `play` and `serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from openfield.errors import InvalidInput
from openfield.options import MORE, CommandChanges, Port, Whole

TRIAL_LIST = "trial_list.txt"


@dataclass(frozen=True, kw_only=True)
class BirdsOptions:
    """Options of every command.

    Example:
        openfield COMMAND birds --config config.xml --trial 0-4
    """

    config: Annotated[str | None, Parameter(name=["--config", "--config-path"], metavar="FILE")] = None
    """Play the trials of a config.xml, a configMeta.xml or a folder."""
    trial: Annotated[str | None, Parameter(metavar="NUMBERS")] = None
    """Play only this trial of the configuration, counted from 0, or a range: 2-5."""
    trial_list_path: Annotated[str | None, Parameter(metavar="FILE", group=MORE)] = None
    """Play only the trials whose numbers are in this file, one in a line."""
    load_trial_list: Annotated[bool, Parameter(group=MORE)] = False
    """Play only the trials whose numbers are in trial_list.txt."""
    informed_only: bool = False
    """Play only the trials that announce the novelty to the agent."""
    uninformed_only: bool = False
    """Play only the trials that do not announce the novelty."""
    levels: Annotated[str | None, Parameter(metavar="DIR")] = None
    """The folder of levels."""
    dev: Annotated[bool, Parameter(group=MORE)] = False
    """Name every object in the ground truth."""
    noisy_batch_gt: Annotated[bool, Parameter(group=MORE)] = False
    """Add noise to batches of ground truth."""
    headless: Annotated[bool, Parameter(group=MORE)] = False
    """Accepted and without effect: there is never a window."""


@dataclass(frozen=True, kw_only=True)
class BirdsServeOptions(BirdsOptions):
    """Options of `serve`.

    Example:
        openfield serve birds --config config.xml --informed-only
    """

    observer_port: Annotated[Port | None, Parameter(group=MORE)] = None
    """The port observers connect to [2006]; 0 takes a free one."""
    gtshoot_ints: Annotated[Whole | None, Parameter(group=MORE)] = None
    """How many numbers request 38 has: 5 or 6 [6]."""


def prepare(command: str, options: BirdsOptions) -> CommandChanges:
    """Return the settings that options ask for, and for `serve` what the wire is told."""
    if options.informed_only and options.uninformed_only:
        raise InvalidInput("--informed-only and --uninformed-only exclude each other. Leave both out for all trials.")
    told = "informed" if options.informed_only else "uninformed" if options.uninformed_only else None
    settings = {
        "config": options.config,
        "trial": options.trial,
        "trial_list": options.trial_list_path or (TRIAL_LIST if options.load_trial_list else None),
        "told": told,
        "levels": options.levels,
        "dev": options.dev or None,
        "noisy_batch": options.noisy_batch_gt or None,
    }
    experiment: dict[str, Any] = {"settings": {name: value for name, value in settings.items() if value is not None}}
    if not isinstance(options, BirdsServeOptions):
        return CommandChanges(experiment)
    experiment["limits"] = {"reply_seconds": None}  # its agents may prepare for a set as long as they like
    wire = {"observer_port": options.observer_port, "gtshoot_ints": options.gtshoot_ints}
    return CommandChanges(experiment, serving={name: value for name, value in wire.items() if value is not None})
