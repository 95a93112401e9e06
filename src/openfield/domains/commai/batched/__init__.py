"""Many environments of micro tasks in lockstep, to train learners: `commai.batch(tasks, n)`.

Start with `batch.py`, which says what a `Batch` is; `factory.py` makes the right one, and has the one that works
without numba. For the others `compiler.py`, with `trace.py`, turns the tasks into a program (`program.py`), whose
states `program_batch.py` keeps: `kernel.py` steps it with numba, and `device.py` on a card, with the same kernel, which
`translation.py` writes as CUDA. `vector_env.py` is a batch for Gymnasium, `functional.py` one for JAX.
"""
