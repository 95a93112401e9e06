"""From frames to inputs: downscale images, discretize their pixels, encode them as integers, and count transitions.

Start at `encode`, which has each step as a function of arrays. `table_of_episodes` makes a table of episodes in memory,
`table_of_files` a table file from any number of episode files. `episode_files` reads the frames of episodes.
"""
