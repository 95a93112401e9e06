"""The teacher: an environment that says one symbol a step, and its parts.

Start with `environment.py`, the loop that hears a symbol and answers with a symbol and a reward. `task.py` has the
class that authors of tasks subclass, with all that a task may call. `schedulers.py` choose the next task,
`serializers.py` turn text into symbols, and `grid_world.py` is the world of the navigation tasks. `learner_session.py`
plays a learner against an environment without recording it.
"""
