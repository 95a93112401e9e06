"""What several tests of objectives share."""

import pytest

from openfield.cli.objectives import app
from openfield.errors import OpenfieldError


@pytest.fixture
def run(capsys):
    """The command as the main program runs it: exit status, standard output, error output."""

    def call(*tokens):
        status = 0
        try:
            app([str(token) for token in tokens], result_action="return_value")
        except SystemExit as end:
            status = end.code or 0
        except OpenfieldError as error:
            capsys.readouterr()
            return error.exit_status, "", str(error)
        output = capsys.readouterr()
        return status, output.out, output.err

    return call
