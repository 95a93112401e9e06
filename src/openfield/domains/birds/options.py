"""The options of the original game, for `openfield run`, `play` and `serve`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from cyclopts import Parameter

from openfield.errors import InvalidInput
from openfield.options import MORE, CommandChanges, Port, Whole, changed_fields

RARE = Parameter(group=MORE)


@dataclass(frozen=True, kw_only=True)
class BirdsOptions:
    """Options of every command. Most fields are settings of the domain.

    Example:
        openfield COMMAND birds --config config.xml --trial 0-4
    """

    config: Annotated[str, Parameter(name=["--config", "--config-path"], metavar="FILE")] = ""
    """Play the trials of a config.xml, a configMeta.xml or a folder."""
    trial: Annotated[str, Parameter(metavar="NUMBERS")] = ""
    """Play only this trial of the configuration, counted from 0, or a range: 2-5."""
    informed_only: bool = False
    """Play only the trials that announce the novelty to the agent."""
    uninformed_only: bool = False
    """Play only the trials that do not announce the novelty."""
    levels: Annotated[str, Parameter(metavar="DIR")] = ""
    """The folder of levels."""
    trial_list: Annotated[str, Parameter(name="--trial-list-path", metavar="FILE", group=MORE)] = ""
    """Play only the trials whose numbers are in this file, one in a line."""
    load_trial_list: Annotated[bool, RARE] = False
    """Play only the trials whose numbers are in trial_list.txt."""
    dev: Annotated[bool, RARE] = False
    """Name every object in the ground truth."""
    noisy_batch: Annotated[bool, Parameter(name="--noisy-batch-gt", group=MORE)] = False
    """Add noise to batches of ground truth."""
    headless: Annotated[bool, RARE] = False
    """Accepted and without effect: there is never a window."""

    def prepare(self) -> CommandChanges:
        """Return the settings that the options ask for."""
        if self.informed_only and self.uninformed_only:
            raise InvalidInput("--informed-only and --uninformed-only exclude each other. Leave out one of them.")
        chosen: dict[str, Any] = {"trial_list": "trial_list.txt"} if self.load_trial_list else {}
        if self.informed_only or self.uninformed_only:
            chosen["told"] = "informed" if self.informed_only else "uninformed"
        names = {"config", "trial", "levels", "trial_list", "dev", "noisy_batch"}
        chosen |= {name: value for name, value in changed_fields(self).items() if name in names}
        return CommandChanges({"settings": chosen} if chosen else {})


@dataclass(frozen=True, kw_only=True)
class BirdsServeOptions(BirdsOptions):
    """Options of `serve`.

    Example:
        openfield serve birds --config config.xml --informed-only
    """

    observer_port: Annotated[Port | None, RARE] = None
    """The port observers connect to [2006]; 0 takes a free one."""
    gtshoot_ints: Annotated[Whole | None, RARE] = None
    """How many numbers request 38 has: 5 or 6 [6]."""

    def prepare(self) -> CommandChanges:
        """Return the settings, and the options of the wire; its agents may prepare for a set as long as they like."""
        changes = super().prepare()
        changed = changed_fields(self)
        wire = {name: changed[name] for name in ("observer_port", "gtshoot_ints") if name in changed}
        return replace(changes, experiment={**changes.experiment, "limits": {"reply_seconds": None}}, serving=wire)
