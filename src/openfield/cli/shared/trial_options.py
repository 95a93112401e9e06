"""Options that several commands share: which trials are made, out of the user's words and the domain's flags.

Only the command line imports this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from openfield.cli.shared.common import Whole

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.options import Launch
    from openfield.trial import Trial


@Parameter(name="*")
@dataclass(frozen=True)
class TrialOptions:
    """Which trials are made.

    Parameters
    ----------
    trials
        How many trials [1 to play, 5 for each agent that is served].
    seed
        The root of all seeds.
    novelty
        `NAME[:difficulty]`, `a+b` for both at once, or `none`.
    set_
        `key=value`, a setting of the domain; give it again for further settings.
    redlight
        Tell whoever plays when the world has changed.
    """

    trials: Annotated[Whole | None, Parameter(validator=Number(gte=1, lte=1_000_000))] = None
    seed: Whole = 0
    novelty: str | None = None
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"])] = False

    def make(self, domain: Domain[Any], launch: Launch, count: int, **limits: Any) -> list[Trial]:
        """The trials, so many unless something else is said; the limits go before those of the domain's flags."""
        from openfield.runner.experiment import limit, make_trials, parse_settings

        settings = {**(launch.settings or {}), **parse_settings(self.set_ or [])}
        wanted, novelty = self.trials or launch.trials, self.novelty or launch.novelty
        made = make_trials(domain, wanted, self.seed, novelty, self.redlight, settings, usual=count)
        return limit(made, {**(launch.limits or {}), **limits})


DEFAULT = TrialOptions()
