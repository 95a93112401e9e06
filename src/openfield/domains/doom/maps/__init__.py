"""Maps for the engine, written without an editor or a compiler.

`duel` and `arena` draw the layout of an episode; start there. `scenario` writes them as text (UDMF) and builds a WAD
from them, with the scripts that `acs` assembles. `pathfinder` leads enemies through the arena.
"""
