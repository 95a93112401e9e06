"""The command line as a program: `openfield`, or `python -m openfield` for when the script is not on the path."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is being loaded gives no traceback either."""
    try:
        from openfield.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("openfield: Interrupted.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
