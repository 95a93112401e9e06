"""The TCP protocol of the original game, on both sides.

Start with `conversation`, which gives every request its meaning. `messages` has the bytes, `server` the sockets,
`team_session` what is kept about an agent; `client` and `remote_agent` are the other side.
"""
