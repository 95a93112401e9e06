"""`openfield completion`: print what completes commands and options in a shell."""

from __future__ import annotations

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that lets a shell complete commands and options.

    Args:
        shell: Your shell.

    Example:
        openfield completion zsh > ~/.zfunc/_openfield
    """
    from openfield.cli.app import make_command_line

    print(make_command_line([]).generate_completion(prog_name="openfield", shell=shell), end="")
