"""CommAI: a teacher and a learner exchange bytes, and tasks follow each other unannounced.

`domain.py` names what the domain offers, and `world.py` is what a rollout steps. Below them, `environment/` is the
teacher, `tasks/` has the exercises and curricula, `agents/` the learners, `wire/` the protocol of remote learners, and
`batched/` steps many environments at once.
To write a task of your own, start with `MicroTask` and `examples/commai_task.py`.
"""

from typing import TYPE_CHECKING

from openfield.domains.commai.domain import DOMAIN
from openfield.domains.commai.settings import CommaiSettings
from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.domains.commai.agents.learner_agent import load_learner
    from openfield.domains.commai.agents.learners import (
        EchoLearner,
        MappingLearner,
        MemorisingLearner,
        RandomLearner,
        SilentLearner,
    )
    from openfield.domains.commai.agents.oracle import Oracle
    from openfield.domains.commai.batched.batch import Batch, DrawStream
    from openfield.domains.commai.batched.factory import batch
    from openfield.domains.commai.batched.functional import FunctionalBatch
    from openfield.domains.commai.curriculum import load_configuration, make_environment
    from openfield.domains.commai.environment.environment import Environment, Tally
    from openfield.domains.commai.environment.learner_session import Learner, LearnerSession
    from openfield.domains.commai.environment.schedulers import (
        ConsecutiveScheduler,
        DependenciesScheduler,
        IncrementalScheduler,
        RandomScheduler,
        SequentialScheduler,
    )
    from openfield.domains.commai.environment.task import Instance, Round, RoundScript, Stage, Task
    from openfield.domains.commai.tasks.catalogue import make_task, task_ids
    from openfield.domains.commai.tasks.micro import MicroTask

__all__ = [
    "DOMAIN",
    "Batch",
    "CommaiSettings",
    "ConsecutiveScheduler",
    "DependenciesScheduler",
    "DrawStream",
    "EchoLearner",
    "Environment",
    "FunctionalBatch",
    "IncrementalScheduler",
    "Instance",
    "Learner",
    "LearnerSession",
    "MappingLearner",
    "MemorisingLearner",
    "MicroTask",
    "Oracle",
    "RandomLearner",
    "RandomScheduler",
    "Round",
    "RoundScript",
    "SequentialScheduler",
    "SilentLearner",
    "Stage",
    "Tally",
    "Task",
    "batch",
    "load_configuration",
    "load_learner",
    "make_environment",
    "make_task",
    "task_ids",
]

__getattr__, __dir__ = attach(__name__)
