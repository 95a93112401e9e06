"""The CommAI domain: a teacher and a learner exchange bytes, and tasks follow each other unannounced."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openfield.domains.commai.domain import DOMAIN
from openfield.domains.commai.settings import Settings

if TYPE_CHECKING:
    from openfield.domains.commai.configuration import load_configuration
    from openfield.domains.commai.curriculum import make_environment
    from openfield.domains.commai.engine import Environment, Tally
    from openfield.domains.commai.learners import (
        EchoLearner,
        MappingLearner,
        MemorisingLearner,
        Oracle,
        RandomLearner,
        SilentLearner,
        load_learner,
    )
    from openfield.domains.commai.rounds import Round, Script
    from openfield.domains.commai.schedulers import (
        ConsecutiveScheduler,
        DependenciesScheduler,
        IncrementalScheduler,
        RandomScheduler,
        SequentialScheduler,
    )
    from openfield.domains.commai.session import Learner, Session
    from openfield.domains.commai.task import Instance, Stage, Task
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
    "curriculum": ("make_environment",),
    "engine": ("Environment", "Tally"),
    "learners": (
        "EchoLearner",
        "MappingLearner",
        "MemorisingLearner",
        "Oracle",
        "RandomLearner",
        "SilentLearner",
        "load_learner",
    ),
    "rounds": ("Round", "Script"),
    "schedulers": (
        "ConsecutiveScheduler",
        "DependenciesScheduler",
        "IncrementalScheduler",
        "RandomScheduler",
        "SequentialScheduler",
    ),
    "session": ("Learner", "Session"),
    "task": ("Instance", "Stage", "Task"),
    "tasks.catalogue": ("make_task", "task_ids"),
    "tasks.legacy.dialogue": ("Dialogue", "DialogueTask"),
    "tasks.micro": ("MicroTask",),
}


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used, so that listing domains stays cheap."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"openfield.domains.commai.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'openfield.domains.commai' has no attribute '{name}'")
