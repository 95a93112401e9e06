"""A remote learner as people have them, for the benchmark of the wire: `commai_peer.py PORT`, an echo."""

import sys

import zmq

if __name__ == "__main__":
    peer = zmq.Context().socket(zmq.PAIR)
    peer.connect(f"tcp://127.0.0.1:{sys.argv[1]}")
    peer.send(b"hello")
    while True:
        _, symbol = peer.recv(), peer.recv()
        peer.send(symbol)
