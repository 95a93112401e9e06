"""The measures: numbers computed from one table, from two tables, or from many agents.

Start with `entropy`, which has empowerment too, and `information`: the objectives of one table. `permutations` shuffles
actions to find how much of an empowerment is bias, and `excess` says what is left. `similarity` and `rarefaction`
compare two tables. `correlations` relates objectives, reward and human similarity over agents.
"""
