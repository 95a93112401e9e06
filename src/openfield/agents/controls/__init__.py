"""Controls: agents that must fail. One that does not shows what is wrong with an evaluation, not how good it is.

They act at random in any domain and differ in what they believe. `control.py` has those that never look at the world:
`counter`, `alarmist`, `doubter`, `quitter` and `sleeper`. `peeker.py` looks where no agent should find anything, and
`enumerator.py` computes the trials that everybody can compute. `openfield run DOMAIN --controls` plays all of them.
"""

from openfield.agents.controls.control import Alarmist, Control, Counter, Doubter, Quitter, Sleeper
from openfield.agents.controls.enumerator import Enumerator
from openfield.agents.controls.find import find_control
from openfield.agents.controls.peeker import Peeker

__all__ = [
    "Alarmist",
    "Control",
    "Counter",
    "Doubter",
    "Enumerator",
    "Peeker",
    "Quitter",
    "Sleeper",
    "find_control",
]
