"""The CommAI domain: a teacher and a learner exchange bytes, and tasks follow each other unannounced."""

from typing import TYPE_CHECKING

from openfield.domains.commai.domain import DOMAIN
from openfield.domains.commai.settings import Settings
from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.domains.commai.agents.learners import (
        EchoLearner,
        MappingLearner,
        MemorisingLearner,
        Oracle,
        RandomLearner,
        SilentLearner,
        load_learner,
    )
    from openfield.domains.commai.configuration import load_configuration
    from openfield.domains.commai.environment.curriculum import make_environment
    from openfield.domains.commai.environment.loop import Environment, Tally
    from openfield.domains.commai.environment.rounds import Round, Script
    from openfield.domains.commai.environment.schedulers import (
        ConsecutiveScheduler,
        DependenciesScheduler,
        IncrementalScheduler,
        RandomScheduler,
        SequentialScheduler,
    )
    from openfield.domains.commai.environment.session import Learner, Session
    from openfield.domains.commai.environment.task import Instance, Stage, Task
    from openfield.domains.commai.tasks.catalogue import make_task, task_ids
    from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, DialogueTask
    from openfield.domains.commai.tasks.micro import MicroTask

__all__ = [
    "DOMAIN",
    "ConsecutiveScheduler",
    "DependenciesScheduler",
    "Dialogue",
    "DialogueTask",
    "EchoLearner",
    "Environment",
    "IncrementalScheduler",
    "Instance",
    "Learner",
    "MappingLearner",
    "MemorisingLearner",
    "MicroTask",
    "Oracle",
    "RandomLearner",
    "RandomScheduler",
    "Round",
    "Script",
    "SequentialScheduler",
    "Session",
    "Settings",
    "SilentLearner",
    "Stage",
    "Tally",
    "Task",
    "load_configuration",
    "load_learner",
    "make_environment",
    "make_task",
    "task_ids",
]
_HOMES = {
    "configuration": ("load_configuration",),
    "environment.curriculum": ("make_environment",),
    "environment.loop": ("Environment", "Tally"),
    "agents.learners": (
        "EchoLearner",
        "MappingLearner",
        "MemorisingLearner",
        "Oracle",
        "RandomLearner",
        "SilentLearner",
        "load_learner",
    ),
    "environment.rounds": ("Round", "Script"),
    "environment.schedulers": (
        "ConsecutiveScheduler",
        "DependenciesScheduler",
        "IncrementalScheduler",
        "RandomScheduler",
        "SequentialScheduler",
    ),
    "environment.session": ("Learner", "Session"),
    "environment.task": ("Instance", "Stage", "Task"),
    "tasks.catalogue": ("make_task", "task_ids"),
    "tasks.legacy.dialogue": ("Dialogue", "DialogueTask"),
    "tasks.micro": ("MicroTask",),
}

__getattr__, __dir__ = attach(__name__, _HOMES)
