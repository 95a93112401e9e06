"""Learners: those that come with the domain, people at a terminal, and adapters for learners of the user.

Start with `learner_agent.py`, which makes an agent of any class with `next(symbol)`. `learners.py` are learners to
compare with, `oracle.py` knows all answers, and `text_agent.py` shows whole questions to a language model or a program.
`human.py` is a person at a terminal, whose view also shows the conversation of any learner (`WatchedLearner`).
"""
