"""The older task sets with the rules of the original and our own wording, under the class names of the original.

Start with `base.py`, the task that erases interruptions. User code builds micro tasks from
`challenge_micro.py`. `tasks/legacy.py` names every task of the older sets.
"""
