"""Connect to `openfield serve` over TCP and play with the same messages as stdio_agent.py. It needs only Python 3.6.

Try it: openfield run examples/maze.py --agent "wire:python3 examples/tcp_agent.py {host} {port}"
"""

# mypy: ignore-errors
# (it runs on a Python that is older than the type hints of this package)

import json
import socket
import sys

from stdio_agent import Walker


def main(host, port):
    """Play one trial: send `hello`, then reply to every turn that asks for an action, until `bye` arrives."""
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rw") as lines:
        say(lines, {"type": "hello", "name": "walker"})
        walker = None
        for line in lines:
            message = json.loads(line)
            if message["type"] == "welcome":
                walker = Walker(message["seed"])
            elif message["type"] == "turn" and message["ask"] == "act":
                say(lines, walker.answer(message))
            elif message["type"] == "bye":
                break


def say(lines, message):
    """Send a message, and flush it at once."""
    lines.write(json.dumps(message) + "\n")
    lines.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
