"""Many environments of a domain at once, each in a process of its own, for `gymnasium.make_vec`.

A domain whose steps take milliseconds names it as its `gym_vector`: stepping one environment after the other would use
one processor, and threads no more than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from gymnasium.vector import AsyncVectorEnv

from openfield.errors import InvalidInput
from openfield.gym.environment import DomainEnv
from openfield.trial import Trial, derive


class ProcessVectorEnv(AsyncVectorEnv):
    """Environments in processes; each plays a trial with a seed of its own."""

    def __init__(
        self,
        domain: str,
        num_envs: int = 1,
        trial: Trial | None = None,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Start the processes; the arguments are those of `gymnasium.make_vec`.

        Args:
            domain: The domain's name, `module:attribute` or `file.py`.
            num_envs: How many environments there are.
            trial: The trial whose settings they play; by default the domain's first. `reset(seed=...)` gives the seeds.
            settings: Settings of the domain, if there is no trial.
            options: Further arguments of `DomainEnv`. A run file is refused: several processes cannot write it.
        """
        if options.get("journal") is not None:
            raise InvalidInput("Environments in processes record nothing: leave 'journal' out, or use gymnasium.make.")
        first = DomainEnv(domain, trial, settings=settings)
        played = [first.trial, *(_with_seed(first.trial, number) for number in range(1, num_envs))]
        super().__init__([partial(DomainEnv, domain, each, **options) for each in played])


def _with_seed(trial: Trial, number: int) -> Trial:
    return msgspec.structs.replace(trial, seed=derive(trial.seed, "vector", number))
