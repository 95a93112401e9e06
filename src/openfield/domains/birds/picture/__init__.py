"""Pictures of a level for people and for agents that look: everything is painted here, nothing is copied.

Begin with `painting.py`, which makes one picture of a scene from the sprites of `creatures.py` and `objects.py` in
front of `landscape.py`. `film.py` follows a game with a camera, and adds dust and feathers where things break.
"""
