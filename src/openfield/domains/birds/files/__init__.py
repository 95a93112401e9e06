"""The configuration files of an evaluation, the pool of levels, and the generators of both.

Start with `config`, which reads both kinds of configuration. `generation` draws trials from a description, `pool` finds
levels, and `templates` makes new ones.
"""
