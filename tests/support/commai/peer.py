"""A remote learner as people have them: `peer.py PORT [FAULT]`, one PAIR socket, an echo.

Faults: `dies` after fifty symbols, `hangs` after fifty, `babbles` a word, `shouts` a symbol beyond the
alphabet, `greets` in its own way, `repeats` its hello after fifty.
"""

import sys
import time

import zmq

SOCKET = zmq.Context().socket(zmq.PAIR)
SOCKET.connect(f"tcp://127.0.0.1:{sys.argv[-1] if sys.argv[-1].isdigit() else sys.argv[1]}")
FAULT = sys.argv[2] if len(sys.argv) > 2 and not sys.argv[2].isdigit() else ""
SOCKET.send(b"hallo" if FAULT == "greets" else b"hello")
for number in range(1_000_000):
    reward, symbol = SOCKET.recv(), SOCKET.recv()
    if reward not in (b"0", b"1", b"-1"):
        sys.exit(f"this is no reward: {reward!r}")
    if number == 50 and FAULT == "dies":
        sys.exit(3)
    if number == 50 and FAULT == "hangs":
        time.sleep(600)
    if number == 50 and FAULT == "repeats":
        SOCKET.send(b"hello")
        if (SOCKET.recv(), SOCKET.recv()) != (reward, symbol):
            sys.exit("a second hello shows another turn")
    if number == 50 and FAULT in ("babbles", "shouts"):
        symbol = b"word" if FAULT == "babbles" else "ā".encode()
    SOCKET.send(symbol)
