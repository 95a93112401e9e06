"""Any class with `next` and `reward` as a learner.

Sessions and worlds take what comes out of here.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from openfield.errors import AgentProtocol, InvalidInput


class LearnerAdapter:
    """Makes a learner of anything that has `next(symbol)`: `reward` may be missing, symbols may be bytes or numbers.

    Args:
        learner: The object.
        name: What errors call it.
    """

    def __init__(self, learner: Any, name: str = "") -> None:
        self.name = name or type(learner).__name__
        if not callable(getattr(learner, "next", None)):
            raise InvalidInput(f"{self.name} is no learner: it needs a method next(symbol).")
        self._learner = learner
        self._reward = getattr(learner, "reward", None)

    def next(self, symbol: str) -> str | None:
        """The learner's answer as a character."""
        answer: Any = self._learner.next(symbol)
        if isinstance(answer, bytes):
            answer = answer.decode("latin-1")
        if answer is None or (isinstance(answer, str) and len(answer) == 1 and ord(answer) < 256):
            return answer
        if isinstance(answer, int) and str(answer) in "01":
            return str(answer)
        raise AgentProtocol(f"{self.name} said {answer!r}. A symbol is one character with a code from 0 to 255.")

    def reward(self, reward: int) -> None:
        """Tells the learner, if it wants to know."""
        if self._reward is not None:
            self._reward(reward)


def load_learner(path: str, *args: Any) -> LearnerAdapter:
    """The learner behind a dotted path like `my_learners.Clever` or `my_learners:Clever`, made with these arguments.

    Raises:
        InvalidInput: There is no such class.
    """
    module_name, _, name = path.replace(":", ".").rpartition(".")
    if not module_name:
        raise InvalidInput(f"Learner '{path}' is no dotted path. Write it like 'my_module.MyLearner'.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        made = getattr(importlib.import_module(module_name), name)(*args)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"Learner '{path}' cannot be imported: {error}.") from error
    except AttributeError:
        raise InvalidInput(f"Learner '{path}': the module {module_name} has no class {name}.") from None
    return LearnerAdapter(made, path)
