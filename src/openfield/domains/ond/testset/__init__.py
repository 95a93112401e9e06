"""Test sets: tests with their truth, where they come from, and the answers of an agent to them.

Start with `test.py`. Tests are read from a data directory (`data_directory.py`) or built from samples (`builder.py`,
`samples.py`). `agent_answers.py` keeps what an agent answers, `results.py` reads what it posts, `feedback.py` sells it
labels, and `evaluation.py` computes the scores.
"""
