"""Many environments of micro tasks in lockstep, to train learners: `commai.batch(tasks, n)`.

`factory.py` makes a `Batch`, and has the one that works without numba. `compiler.py` turns the tasks into a program
(`program.py`) that `kernel.py` steps with numba. `vector_env.py` is the same for Gymnasium.
"""
