"""The domains that come with openfield, one folder each: birds, commai, doom, gym, ond.

All have the same common files, so that the second one is easy to read: start with `domain.py`, then `settings.py`,
`novelty.py` and `world.py`. Agents of the domain are in `agents/`, the protocol of the original system in `wire/` (in
`ond`: `server/` and `client/`), and its own parts in folders with the field's names.
"""
