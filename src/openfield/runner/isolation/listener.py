"""Open a port inside a sandbox without a network, hand it to the harness, and become the program.

This is a program of its own, started as `python -I -S listener.py SOCKET PORT COMMAND...` and with nothing of openfield
imported. A listening socket belongs to the network it was opened in, so the harness that gets it through SOCKET accepts
the program's connections from outside, and passes them on to the server.
"""

from __future__ import annotations

import os
import socket
import sys

HOST = "127.0.0.1"


def main(harness: str, port: str, *words: str) -> None:
    """Listen, hand over the socket, and run the command in this process."""
    with socket.socket(fileno=int(harness)) as channel, socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, int(port)))
        listening.listen(128)
        socket.send_fds(channel, [b"l"], [listening.fileno()])
    try:
        os.execvp(words[0], words)  # noqa: S606
    except OSError as error:
        sys.exit(f"'{words[0]}' cannot be started: {error.strerror}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
