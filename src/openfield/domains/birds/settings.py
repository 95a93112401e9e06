"""What can be changed about birds: where levels come from, how trials are made, what is seen.

Read by trials and worlds; novelties change `changes` and nothing else.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openfield.domains.birds.evaluation.script import CheckpointPolicy
from openfield.domains.birds.files.generation import TimeScope
from openfield.settings import Settings

Scenario = Literal["all", "single", "multiple", "rolling", "falling", "sliding"]
Count = Annotated[int, Meta(ge=0)]


class BirdsSettings(Settings, frozen=True):
    """The settings of a birds trial."""

    config: Annotated[str, Meta(description="A config.xml, a configMeta.xml or a folder: its trials are played.")] = ""
    trial: Annotated[str, Meta(description="Which of its trials: a number from 0 on, or two as in 2-5.")] = ""
    trial_list: Annotated[str, Meta(description="A file with the numbers of its trials to play, one in a line.")] = ""
    told: Annotated[
        Literal["all", "informed", "uninformed"], Meta(description="Its trials that tell what is novel, or the others.")
    ] = "all"
    levels: Annotated[str, Meta(description="A folder of levels; empty is the one that ships.")] = ""
    training: Annotated[Count, Meta(description="Levels of training, without a configuration.")] = 0
    before: Annotated[Count, Meta(description="Test levels before the onset.")] = 10
    after: Annotated[Count, Meta(description="Test levels from the onset on.")] = 20
    scenario: Annotated[Scenario, Meta(description="What levels are about.")] = "all"
    family: Annotated[
        int, Meta(ge=0, le=8, description="Whose novelty's templates levels are of; 0 is that of the trial's own.")
    ] = 0
    attempts: Annotated[int, Meta(description="Loads of each level; 0 or less is no limit.")] = 1
    report_step: Annotated[int, Meta(description="Interactions between two questions for a belief; 0 never asks.")] = 0
    profile: Annotated[
        Literal["auto", "sailon", "phyq"], Meta(description="The physics; auto goes by the level's file.")
    ] = "auto"
    flight_seconds: Annotated[
        int, Meta(ge=0, le=10**6, description="A bird that touches nothing so long has had its turn; 0: 60, phyq 20.")
    ] = 0
    observe: Annotated[
        Literal["objects", "features", "image"], Meta(description="Ground truth, a table of numbers, or a picture.")
    ] = "objects"
    dev: Annotated[bool, Meta(description="Ground truth names everything.")] = False
    noise: Annotated[
        Literal["sailon", "phyq"], Meta(description="How the noisy ground truth is off: up to 1 pixel, or up to 2.")
    ] = "sailon"
    noisy: Annotated[bool, Meta(description="Observations are noisy.")] = False
    noisy_batch: Annotated[bool, Meta(description="Ground truths kept during a shot are noisy.")] = False
    count_loads: Annotated[bool, Meta(description="Loading a level is an interaction.")] = True
    checkpoint_policy: Annotated[
        CheckpointPolicy, Meta(description="Whether a checkpoint plays the next test set or all that are left.")
    ] = "next_set"
    repeat_unlimited: Annotated[
        bool, Meta(description="The next level is the same again where attempts have no limit, else the one after it.")
    ] = True
    finish_levels: Annotated[
        bool,
        Meta(description="A level in play is finished when a limit of its set is reached and another set follows."),
    ] = True
    endless: Annotated[bool, Meta(description="Trials that no limit ever ends are not refused.")] = False
    time_scope: Annotated[
        TimeScope, Meta(description="Whether a description's training time is for the set or for each level.")
    ] = "set"
    changes: Annotated[tuple[str, ...], Meta(description="How levels are changed; what novelties set.")] = ()
