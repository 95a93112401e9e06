"""The physical game: level files, bodies, forces, damage and score, and what is seen of them.

Start with `game`, which simulates a `level` and finds shots that pass it. `bodies` holds its bodies, with the tables
of `physics`; `scene` is what a viewport shows, as `ground_truth` or as a picture (folder `picture`).
"""
