"""What the pages of a trial and of its turns are made of: read from the record by number, cut to what a page can show.

`trial.py` reads a cell and finds episodes and turns, `turn.py` reads turns, `values.py` cuts values that are too large,
`timeline.py` draws the episodes. Start with `trial.py`.
"""

from openfield.view.trials.timeline import Timeline, draw_timeline
from openfield.view.trials.trial import PlayedTrial, TrialReader
from openfield.view.trials.turn import ShownTurn, read_turns

__all__ = [
    "PlayedTrial",
    "ShownTurn",
    "Timeline",
    "TrialReader",
    "draw_timeline",
    "read_turns",
]
