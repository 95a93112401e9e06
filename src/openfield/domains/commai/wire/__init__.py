"""The protocol of remote learners: ZeroMQ PAIR, byte for byte the original's.

Start with `server.py`, which serves learners. `zmtp.py` is the part of ZeroMQ's own protocol that it needs.
"""
