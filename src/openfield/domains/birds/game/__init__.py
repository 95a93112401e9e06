"""The physical game: level files, bodies, forces, damage and score, and what is seen of them.

Start with `game`, which simulates a `level` and finds shots that pass it. `bodies` holds its bodies, with the tables
of `physics`; `contacts` and `forces` say what hits and pulls them. `scene` is what a viewport shows, as `ground_truth`
or as a picture, which the package `picture` beside this one draws.
"""
