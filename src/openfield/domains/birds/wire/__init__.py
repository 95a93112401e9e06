"""The TCP protocol of the original game, on both sides.

Start with `conversation`, which gives every request its meaning. `messages` has the bytes, `server` the sockets
and the sessions of agents; `client` and `remote_agent` are the other side.
"""
