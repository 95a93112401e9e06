"""Learners: those that come with the domain, people at a terminal, and adapters for learners of the user.

Start with `learner_agent.py`, which makes an agent of any class with `next(symbol)`. `learners.py` are simple learners
to compare with, `mapping_learner.py` is one that learns, `oracle.py` knows all answers, and `text_agent.py` shows
whole questions to a language model or a program. `human.py` is a person, seen through `terminal_view.py`, which
`WatchedLearner` uses to show the conversation of any learner.
"""
