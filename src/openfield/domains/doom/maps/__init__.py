"""Maps for the engine, written without an editor or a compiler.

`duel` and `arena` draw the layout of an episode; start there. `scenario` builds a WAD from layouts with the formats in
`udmf` (maps as text), `acs` (scripts) and `wad` (the container). `pathfinder` leads enemies through the arena.
"""
