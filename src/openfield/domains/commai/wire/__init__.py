"""The protocol of remote learners: ZeroMQ PAIR, byte for byte the original's.

`server.py` serves learners on a port. It holds the part of ZeroMQ's own protocol that this needs.
"""
