from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from openfield.cli.main import run_command

COMPLETE = """source {script}
COMP_WORDS=({words}); COMP_CWORD={last}; COMP_LINE="{words}"; COMP_POINT=${{#COMP_LINE}}
_openfield openfield; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("openfield re", {"report", "resume"}), ("openfield report --obj", {"--objectives"})],
)
def test_bash_completes_commands_and_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, wanted: set[str]
) -> None:
    script = tmp_path / "openfield.bash"
    assert run_command(["completion", "bash"]) == 0
    script.write_text(capsys.readouterr().out)
    line = COMPLETE.format(script=script, words=words, last=len(words.split()) - 1)
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_can_read_their_script(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run_command(["completion", name]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("report", "resume", "objectives"))
    if (program := shutil.which(name)) is not None:
        subprocess.run([program, "--no-exec"], input=text, text=True, check=True)
