"""Measures of curricula: tasks that follow each other, in worlds whose episodes are instances of tasks.

Start with `instances`, which reads the tasks of a cell from its record, and what its trial says of them beforehand.
`gradual` measures how a curriculum was learnt, `borders` holds beliefs against the borders between tasks, and `tasks`
compares each task with the same task played alone. `sets` measures the training set and each test set of a trial.
"""
