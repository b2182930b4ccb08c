"""A release has one version, that of pyproject.toml, and its workflows call scripts that exist."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.wheel import ROOT

VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
IMAGES = ["deploy/Dockerfile", "deploy/mosquitto/Dockerfile", "deploy/compose.yaml", "docs/deploy/kubernetes.md"]


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


def commands(path: Path) -> list[str]:
    """Return what a workflow runs, also what it takes from a matrix."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    strategies = [job.get("strategy", {}).get("matrix", {}) for job in workflow["jobs"].values()]
    listed = [one for matrix in strategies for one in matrix.get("include", [])]
    return [str(one["run"]) for one in (*steps(workflow), *listed) if "run" in one]


def test_the_chart_has_the_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "fleet" / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def test_the_native_part_has_the_version() -> None:
    file = ROOT / "fleet" / "roles" / "edge" / "transport" / "native" / "pyproject.toml"
    assert tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"] == VERSION


@pytest.mark.parametrize("file", IMAGES)
def test_images_are_named_with_the_version(file: str) -> None:
    tags = re.findall(r"\bfleet(?:-mosquitto)?:(\d[\d.]*\d)", (ROOT / file).read_text(encoding="utf-8"))
    assert tags and set(tags) == {VERSION}


def test_the_changelog_has_a_section_of_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)[:2] == ["Unreleased", VERSION]


def test_a_tag_of_another_version_is_refused_before_anything_is_built() -> None:
    done = subprocess.run(
        [str(ROOT / "scripts" / "release"), "v9.9.9"], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f"release: the tag v9.9.9 is not v{VERSION}, the version in pyproject.toml\n"


def test_the_release_gives_its_tag_to_the_script_that_compares_it() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    assert 'scripts/release "$GITHUB_REF_NAME"' in [step.get("run") for step in workflow["jobs"]["build"]["steps"]]
    assert workflow["jobs"]["wheel"]["needs"] == ["test", "build", "native"]
    assert workflow["jobs"]["images"]["needs"] == ["test", "build"]
    assert {one["machine"] for one in workflow["jobs"]["native"]["strategy"]["matrix"]["include"]} == {
        "x86_64",
        "aarch64",
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_scripts_and_tests_that_exist(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.])((?:scripts|tests|deploy)/[\w./-]*\w)", text))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    assert all(isinstance(step, dict) and ("run" in step) != ("uses" in step) for step in steps(yaml.safe_load(text)))


@pytest.mark.parametrize("form", ["--checks", "--slow", "--docker"])
def test_a_workflow_runs_each_form_of_the_tests(form: str) -> None:
    assert [run for path in WORKFLOWS for run in commands(path) if re.search(rf"scripts/test {form}(?: |$)", run)]


def test_the_containers_find_the_version_from_which_the_upgrade_starts() -> None:
    weekly = yaml.safe_load((ROOT / ".github" / "workflows" / "weekly.yml").read_text(encoding="utf-8"))
    checkout, start = weekly["jobs"]["containers"]["steps"]
    assert checkout["with"]["fetch-depth"] == 0
    assert "GIT_CONFIG_KEY_0=safe.directory" in start["run"]


def test_hooks_before_a_commit_run_the_locked_tools() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    [repository] = config["repos"]
    assert repository["repo"] == "local"
    assert all(hook["entry"].startswith(".venv/bin/") for hook in repository["hooks"])
