"""Protocol 0.8 over RabbitMQ: how agents of the original system play.

`amqp` is the wire that `openfield serve` opens; start there. `server` carries messages between the broker and the
sessions, `session` answers them state by state, `messages` has their formats, and `experiments` makes the trials of a
model that registers. `client` lets an openfield agent play on such a server, with `rpc` below it. `ini` reads the
configuration files of both sides, and `private_broker` starts a RabbitMQ of our own.
"""
