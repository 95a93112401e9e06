"""The settings of CommAI: the curriculum, the criterion of success, the channel and the limits.

A trial keeps what differs from these defaults. The environment, its tasks and its scheduler read them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from openfield.settings import Settings

Alphabet = Literal["", "shifted", "foreign"]
Feedback = Literal["", "swapped", "reworded", "withheld"]
SchedulerName = Literal["random", "sequential", "incremental", "consecutive", "dependencies"]

STRICT_MINI_THRESHOLD = 20
"""A learner that always says `true.` gets five right in a row after about 62 instances, twenty after two million."""


INSTANCE_BEGINS = "begin"
"""The feedback of a turn that begins an instance, with `reward_calls=ends`."""


class CommaiSettings(Settings, frozen=True, kw_only=True):
    """The settings of the CommAI domain; the defaults are those of the General AI Challenge, Round 1."""

    short = {"tasks": ("micro14",), "cyclic": True, "required_consecutive_rewards": 1, "max_steps": 1500}

    tasks: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="The curriculum in order: task ids, or `all`, `micro`, `mini` and legacy set names.",
        ),
    ] = ("all",)
    scheduler: Annotated[SchedulerName, Meta(description="How the next task is chosen.")] = "consecutive"
    success_threshold: Annotated[
        int, Meta(ge=1, description="Solved instances that finish a task (in a row, if consecutive).")
    ] = 5
    cyclic: Annotated[bool, Meta(description="Whether a finished curriculum starts again instead of ending.")] = False
    dependencies: Annotated[
        tuple[str, ...], Meta(description="For the dependencies scheduler: `a>b` means that b needs a.")
    ] = ()
    unlock_threshold: Annotated[
        int,
        Meta(ge=1, description="For the dependencies scheduler: solved instances that unlock the tasks behind a task."),
    ] = 10
    design: Annotated[
        Literal["", "gradual"],
        Meta(description="`gradual` plays the curriculum, and with the same seed each of its tasks alone."),
    ] = ""
    task_budget: Annotated[
        int, Meta(ge=0, description="Steps after which the curriculum leaves a task; 0 lets a task use all steps.")
    ] = 0
    retest: Annotated[
        bool, Meta(description="Whether all tasks are played again at the end, to measure retention.")
    ] = False
    max_steps: Annotated[int, Meta(ge=1, description="The maximum number of steps of a trial.")] = 100_000
    bit_mode: Annotated[bool, Meta(description="Whether a step carries a bit instead of a byte.")] = False
    scramble: Annotated[
        Literal["", "readable", "unreadable"],
        Meta(description="Whether every word is replaced by a made-up one: pronounceable (readable) or not."),
    ] = ""
    compat: Annotated[
        Literal["", "round1"], Meta(description="`round1` restores quirks of the original that are otherwise repaired.")
    ] = ""
    reward_calls: Annotated[
        Literal["every", "ends"],
        Meta(description="When a learner gets its reward: at every step, or as CommAI-env did when an instance ends."),
    ] = "every"
    strict: Annotated[
        bool,
        Meta(description="Whether a winning streak must cover every key, and mini tasks take 20 solved instances."),
    ] = False
    max_reward_per_task: Annotated[
        int, Meta(ge=0, description="The maximum reward of a task; after that it pays nothing.")
    ] = 2_147_483_647
    required_consecutive_rewards: Annotated[
        int, Meta(ge=1, description="Correct answers in a row that end a micro instance.")
    ] = 10
    success_tolerance: Annotated[
        float, Meta(ge=0, description="The larger, the more questions a learner may take for a success.")
    ] = 4.0
    failed_task_tolerance: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="The larger, the later a micro instance is given up; by default the task's own value."),
    ] = None
    alphabet_size: Annotated[
        Annotated[int, Meta(ge=1, le=26)] | None,
        Meta(
            description="Symbols of micro1 and micro4, letters of micro2 and micro3; by default 10 in micro1, else 4."
        ),
    ] = None
    mapping_size: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(description="Keys of the large mappings; by default 10, and 8 in micro6."),
    ] = None
    distinct: Annotated[
        bool, Meta(description="Whether random questions are drawn again until a mapping has its full size.")
    ] = False
    configuration: Annotated[
        dict[str, Any], Meta(description="A configuration in the original's form; replaces tasks and scheduler.")
    ] = {}
    module: Annotated[
        str, Meta(description="A Python file whose create_tasks() makes the scheduler; replaces tasks and scheduler.")
    ] = ""
    onset_instances: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Fixes the onset: instances before a novelty starts, unless onset_steps is set."),
    ] = None
    onset_steps: Annotated[
        int, Meta(ge=0, description="Fixes the onset: steps before a novelty starts, at the next instance; 0 does not.")
    ] = 0
    alphabet: Annotated[
        Alphabet, Meta(description="`shifted` replaces letters and digits by others, `foreign` by unused bytes.")
    ] = ""
    alphabet_share: Annotated[
        float, Meta(ge=0, le=1, description="Share of letters and digits that another alphabet replaces.")
    ] = 1.0
    separators: Annotated[bool, Meta(description="Whether other marks replace dot, semicolon and colon.")] = False
    vocabulary: Annotated[
        Literal["common", "rare"], Meta(description="Whether tasks draw common words or only rare ones.")
    ] = "common"
    feedback: Annotated[
        Feedback, Meta(description="How praise and blame are changed: swapped, in other words, or left out.")
    ] = ""
    synonyms: Annotated[bool, Meta(description="Whether keywords of questions are replaced by synonyms.")] = False
    reward_sign: Annotated[Literal[-1, 1], Meta(description="-1 turns every reward into its opposite.")] = 1
    reward_delay: Annotated[int, Meta(ge=0, le=1000, description="Steps by which rewards are late.")] = 0
    intruder: Annotated[str, Meta(description="The id of a task that takes every second instance.")] = ""
    intruder_share: Annotated[
        float, Meta(ge=0, le=1, description="Share of instances that this task takes, evenly spread.")
    ] = 0.5
    show_world: Annotated[
        bool, Meta(description="Whether feedback shows the map of the grid world, if the task has one.")
    ] = False
    skips: Annotated[bool, Meta(description="Whether the learner may give up an instance by saying SKIP.")] = False
