"""Workflow files and templates fit their schemas, which need no network, and name only what exists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "github-issue-forms": FORMS,
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "dependabot": [GITHUB / "dependabot.yml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}
ACTIONS = {f"actions/{name}" for name in ("checkout", "setup-python", "upload-artifact", "download-artifact")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [
    found[1]
    for each in PROJECT["classifiers"]
    if (found := re.fullmatch(r"Programming .* :: Python :: (3\.\d+)", each))
]


def read(name: str) -> Any:
    """Return a workflow. Its key `on` is a truth value in YAML."""
    return yaml.safe_load((GITHUB / "workflows" / f"{name}.yml").read_text())


def list_jobs() -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path.stem}-{name}", job) for path in WORKFLOWS for name, job in read(path.stem)["jobs"].items()]


def list_steps(key: str) -> list[str]:
    """Return the actions, or the commands, of all jobs."""
    return [step[key] for _, job in list_jobs() for step in job["steps"] if key in step]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_fit_their_schemas(schema: str) -> None:
    assert SCHEMAS[schema]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    checked = subprocess.run([*command, *map(str, SCHEMAS[schema])], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read(path: Path) -> None:
    assert read(path.stem)["permissions"] == {"contents": "read"}


def test_only_the_job_that_attaches_files_may_write() -> None:
    granted = {name: job["permissions"] for name, job in list_jobs() if "permissions" in job}
    assert granted == {"release-attach": {"contents": "write"}}


def test_every_job_has_a_limit() -> None:
    assert [name for name, job in list_jobs() if "timeout-minutes" not in job] == []


def test_actions_are_those_of_the_platform_itself() -> None:
    used = [action.partition("@") for action in list_steps("uses")]
    assert {name for name, _, _ in used} == ACTIONS
    assert all(re.fullmatch(r"v\d+", version) for _, _, version in used)


def test_commands_name_what_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = "\n".join(list_steps("run"))
    assert set(re.findall(r"\bmake ([\w-]+)", commands)) <= targets
    for file in ("constraints.txt", ".ci/run"):
        assert file in commands
        assert (ROOT / file).exists()
    assert "http" not in commands


def test_every_supported_python_is_tested() -> None:
    assert read("tests")["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    used = {
        step["with"]["python-version"]
        for _, job in list_jobs()
        for step in job["steps"]
        if "with" in step and "python-version" in step["with"]
    }
    assert used <= {*PYTHONS, "${{ matrix.python }}"}


def test_only_macos_may_fail() -> None:
    assert [name for name, job in list_jobs() if job.get("continue-on-error")] == ["tests-macos"]


def test_hooks_check_what_make_check_checks() -> None:
    """They are local ones: nothing is downloaded."""
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    checked = [line.split("$(BIN)/")[1].split(" --check")[0] for line in recipe[1].splitlines()]
    hooks = [hook["entry"].removeprefix(".venv/bin/").partition(" --force-exclude")[0] for hook in repository["hooks"]]
    assert hooks == [command.removesuffix(" .") for command in checked]
