"""Trials as tasks of Inspect: `inspect eval openfield/trial --model MODEL -T domain=birds`.

The package is found by Inspect through its entry point. `trial_task` has the task; it needs the extra `inspect`.
"""

from openfield.errors import MissingExtra

try:
    from openfield.inspect.trial_task import trial
except ModuleNotFoundError as error:
    if error.name != "inspect_ai":
        raise
    raise MissingExtra("inspect", "openfield.inspect") from None

__all__ = ["trial"]
