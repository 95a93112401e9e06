"""The game engine: start it, keep it alive, and read its state.

`engine` begins episodes and takes actions; start there. `launch` starts the engine's process, `watchdog` ends engines
that hang, `workdir` has their folders, and `shared_wad` puts the maps of many trials into one file. What the engine
shows is read in three steps: `state_source` gives numbers, `state_reader` identifies the entities in them, and
`game_state` has the result.
"""
