"""The protocol of remote learners: ZeroMQ PAIR, byte for byte the original's.

Start with `server.py`, which serves learners. `line.py` is the socket of one learner; libzmq speaks every version of
ZeroMQ's own protocol there. `ports.py` has the ports that learners connect to.
"""
