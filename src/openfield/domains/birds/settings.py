"""The settings of birds: where levels come from, how trials are made, and what the agent sees.

Novelties change the setting `changes`, or the laws of nature: `gravity=2`, `friction=0.5`, `launch=0.8`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openfield.settings import Settings

Scenario = Literal["all", "single", "multiple", "rolling", "falling", "sliding"]
TimeScope = Literal["set", "level"]
Count = Annotated[int, Meta(ge=0)]
Factor = Annotated[float, Meta(gt=0, le=10)]


class BirdsSettings(Settings, frozen=True):
    """The settings of a birds trial."""

    short = {"scenario": "single", "training": 1, "before": 3, "after": 3}

    config: Annotated[
        str, Meta(description="A config.xml, a configMeta.xml, or a folder with one: play its trials.")
    ] = ""
    trial: Annotated[
        str, Meta(description="Play only these trials of it: a number from 0 on, or a range such as 2-5.")
    ] = ""
    trial_list: Annotated[str, Meta(description="A file with the numbers of the trials to play, one per line.")] = ""
    told: Annotated[
        Literal["all", "informed", "uninformed"],
        Meta(description="Play only trials that announce the novelty, or only the others."),
    ] = "all"
    levels: Annotated[str, Meta(description="The folder of levels; empty means the shipped one.")] = ""
    training: Annotated[Count, Meta(description="Training levels, without a configuration.")] = 0
    before: Annotated[Count, Meta(description="Test levels before the onset.")] = 10
    after: Annotated[Count, Meta(description="Test levels from the onset on.")] = 20
    scenario: Annotated[Scenario, Meta(description="The physical scenario of the levels.")] = "all"
    family: Annotated[
        int,
        Meta(ge=0, le=8, description="Novelty level whose templates are played; 0 means that of the trial's novelty."),
    ] = 0
    attempts: Annotated[int, Meta(description="Attempts for each level; 0 or less means no limit.")] = 1
    report_step: Annotated[int, Meta(description="Interactions between two requests for a belief; 0 means never.")] = 0
    profile: Annotated[
        Literal["auto", "sailon", "phyq"], Meta(description="The physics; auto decides by the level file.")
    ] = "auto"
    flight_seconds: Annotated[
        int, Meta(ge=0, le=10**6, description="Longest flight without a contact; 0 means 60 s, in phyq 20 s.")
    ] = 0
    observe: Annotated[
        Literal["objects", "features", "image", "thumbnail"],
        Meta(description="Observe ground truth, a table of numbers, a picture, or a small one of 84 x 84 pixels."),
    ] = "objects"
    screen: Annotated[
        Literal["640x480", "840x480"],
        Meta(description="The size of pictures, in whose pixels ground truth and shots are; Phy-Q has 840x480."),
    ] = "640x480"
    dev: Annotated[bool, Meta(description="Name every object in the ground truth.")] = False
    noise: Annotated[
        Literal["sailon", "phyq"], Meta(description="Noise of the ground truth: up to 1 pixel (sailon) or 2 (phyq).")
    ] = "sailon"
    noisy: Annotated[bool, Meta(description="Add noise to observations.")] = False
    noisy_batch: Annotated[bool, Meta(description="Add noise to ground truths recorded during a shot.")] = False
    count_loads: Annotated[bool, Meta(description="Count the loading of a level as an interaction.")] = True
    checkpoint_policy: Annotated[
        Literal["next_set", "all_sets"],
        Meta(description="Test sets played at a checkpoint: the next one, or all that are left."),
    ] = "next_set"
    repeat_unlimited: Annotated[
        bool, Meta(description="Without a limit of attempts, the next level is the same one again.")
    ] = True
    finish_levels: Annotated[
        bool, Meta(description="Let a level in play be finished after a limit of its set, if another set follows.")
    ] = True
    endless: Annotated[bool, Meta(description="Allow trials that no limit ever ends.")] = False
    time_scope: Annotated[
        TimeScope, Meta(description="Whether the training time of a description is for the set or for each level.")
    ] = "set"
    gravity: Annotated[Factor, Meta(description="Gravity, as a multiple of the usual one.")] = 1.0
    friction: Annotated[Factor, Meta(description="Friction of everything, as a multiple of the usual one.")] = 1.0
    launch: Annotated[Factor, Meta(description="Speed of birds that leave the sling, as a multiple of it.")] = 1.0
    changes: Annotated[tuple[str, ...], Meta(description="Changes of the levels; novelties set this.")] = ()

    @property
    def laws(self) -> dict[str, float]:
        """The laws of nature."""
        return {"gravity": self.gravity, "friction": self.friction, "launch": self.launch}

    @property
    def screen_size(self) -> tuple[int, int]:
        """Pixels of the screen, across and down."""
        width, height = map(int, self.screen.split("x"))
        return width, height
