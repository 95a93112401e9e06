"""From frames to inputs: downscale images, discretize their pixels, encode them as integers, and count transitions.

Start with `encode`, which has each step as a function of arrays. `table_of_episodes` makes a table of episodes, whose
frames `episode_files` and `videos` read.
"""
