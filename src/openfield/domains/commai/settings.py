"""What can be set about the CommAI domain: the curriculum, the criterion of success, the channel, the limits.

A trial keeps what differs from these defaults; the environment, its tasks and its scheduler read them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from openfield.settings import Settings

Alphabet = Literal["", "shifted", "foreign"]
Feedback = Literal["", "swapped", "reworded", "withheld"]
SchedulerName = Literal["random", "sequential", "incremental", "consecutive", "dependencies"]
Scramble = Literal["", "readable", "unreadable"]

STRICT_MINI_THRESHOLD = 20
"""A learner that always says `true.` gets five right in a row after about 62 instances, twenty after two million."""


class CommaiSettings(Settings, frozen=True, kw_only=True):
    """The settings of the CommAI domain; the defaults are those of the General AI Challenge, Round 1."""

    tasks: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="The curriculum in order: task ids, or `all`, `micro`, `mini` and legacy set names.",
        ),
    ] = ("all",)
    scheduler: Annotated[SchedulerName, Meta(description="Who chooses the next task.")] = "consecutive"
    success_threshold: Annotated[
        int, Meta(ge=1, description="How many solved instances finish a task (in a row, if consecutive).")
    ] = 5
    cyclic: Annotated[bool, Meta(description="Whether a finished curriculum starts again instead of ending.")] = False
    dependencies: Annotated[
        tuple[str, ...], Meta(description="For the dependencies scheduler: `a>b` says that b needs a.")
    ] = ()
    unlock_threshold: Annotated[
        int, Meta(ge=1, description="For the dependencies scheduler: solved instances that unlock what needs a task.")
    ] = 10
    retest: Annotated[bool, Meta(description="Whether all tasks come once more at the end, to see what was kept.")] = (
        False
    )
    max_steps: Annotated[int, Meta(ge=1, description="How many steps a trial lasts at most.")] = 100_000
    bit_mode: Annotated[bool, Meta(description="Whether a step carries a bit instead of a byte.")] = False
    scramble: Annotated[
        Scramble, Meta(description="Whether every word is replaced by a made-up one, pronounceable or not.")
    ] = ""
    compat: Annotated[
        Literal["", "round1"], Meta(description="`round1` restores quirks of the original that are mended by default.")
    ] = ""
    strict: Annotated[
        bool,
        Meta(description="Whether a winning streak must cover every key, and mini tasks take 20 solved instances."),
    ] = False
    max_reward_per_task: Annotated[
        int, Meta(ge=0, description="Once a task has paid this much, it pays nothing any more.")
    ] = 2_147_483_647
    required_consecutive_rewards: Annotated[
        int, Meta(ge=1, description="Correct answers in a row that end a micro instance.")
    ] = 10
    success_tolerance: Annotated[
        float, Meta(ge=0, description="The larger, the more questions may be asked before success does not count.")
    ] = 4.0
    failed_task_tolerance: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="The larger, the later a micro instance is given up; the task's own if not set."),
    ] = None
    alphabet_size: Annotated[
        Annotated[int, Meta(ge=1, le=26)] | None,
        Meta(description="Letters in micro1 to micro4; 10 in the first and 4 in the others if not set."),
    ] = None
    mapping_size: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(description="Keys of the large mappings; 10, and 8 in micro6, if not set."),
    ] = None
    distinct: Annotated[
        bool, Meta(description="Whether random questions are redrawn until a mapping has its full size.")
    ] = False
    configuration: Annotated[
        dict[str, Any], Meta(description="A configuration in the original's form; replaces tasks and scheduler.")
    ] = {}
    module: Annotated[
        str, Meta(description="A Python file whose create_tasks() makes the scheduler; replaces tasks and scheduler.")
    ] = ""
    onset_instances: Annotated[
        int, Meta(ge=0, description="After how many instances a novelty starts, unless after a number of steps.")
    ] = 20
    onset_steps: Annotated[
        int, Meta(ge=0, description="After how many steps a novelty starts, at the next instance; 0 counts instances.")
    ] = 0
    alphabet: Annotated[
        Alphabet, Meta(description="Whether letters and digits are other ones, or other bytes altogether.")
    ] = ""
    separators: Annotated[bool, Meta(description="Whether other marks stand for dot, semicolon and colon.")] = False
    vocabulary: Annotated[
        Literal["common", "rare"], Meta(description="Whether tasks draw their words from the common ones or the rest.")
    ] = "common"
    feedback: Annotated[
        Feedback, Meta(description="Whether praise and blame are swapped, said in other words, or not said at all.")
    ] = ""
    synonyms: Annotated[bool, Meta(description="Whether keywords of questions are replaced by synonyms.")] = False
    reward_sign: Annotated[Literal[-1, 1], Meta(description="-1 turns every reward into its opposite.")] = 1
    reward_delay: Annotated[int, Meta(ge=0, le=1000, description="By how many steps rewards come late.")] = 0
    intruder: Annotated[str, Meta(description="A task that takes every second instance, unannounced.")] = ""
    show_world: Annotated[
        bool, Meta(description="Whether feedback shows the map of the grid world, where a task is set in it.")
    ] = False
    skips: Annotated[bool, Meta(description="Whether the learner may give up an instance by saying SKIP.")] = False
