"""The command line, `openfield COMMAND`: each command is a few calls into the package.

Start with `app.py`, which lists the commands; `main.py` runs one. `commands/` has one file per command that plays or
prepares, `results/` one per command that looks at results, `objectives/` the larger command of that name, `shared/`
what several commands use.
"""

from openfield.cli.main import main, run_command

__all__ = ["main", "run_command"]
