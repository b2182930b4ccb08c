"""The wheel without a network: what is in it, what it asks for, and what it says without its dependencies.

tests/e2e/test_wheel.py installs it into an empty environment and runs it.
"""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

import pytest

from fleet import DISTRIBUTION
from tests.support.wheel import LIMIT_SECONDS, ROOT, build_wheel

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the content of the wheel, as pip lays it out."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel"))) as wheel:
        wheel.extractall(folder)
    return folder


def run(folder: Path, *words: str, site: bool = True) -> subprocess.CompletedProcess[str]:
    """Run `python -m fleet` out of the folder; without `site` nothing that pip installed is there."""
    command = [sys.executable, *([] if site else ["-S"]), "-m", "fleet", *words]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
    return subprocess.run(
        command,
        cwd=folder,
        env={**outside, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def test_the_version_is_that_of_pyproject(unpacked: Path) -> None:
    done = run(unpacked, "--version")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, PROJECT["version"], "")
    assert version(DISTRIBUTION) == PROJECT["version"], "the environment is not up to date: run scripts/setup --dev"
    assert PROJECT["name"] == DISTRIBUTION


def test_it_holds_types_licences_voices_and_no_tests(unpacked: Path) -> None:
    assert (unpacked / "fleet" / "py.typed").is_file()
    assert len(list(unpacked.glob("fleet/adapters/speech/voices/*.npy"))) == 2
    assert list(unpacked.glob("*.dist-info/licenses/LICENSE"))
    assert {path.name for path in unpacked.iterdir()} == {"fleet", f"fleet_voice-{PROJECT['version']}.dist-info"}


def test_without_an_extra_it_asks_for_all_that_runs(unpacked: Path) -> None:
    [file] = unpacked.glob("*.dist-info/METADATA")
    metadata = Parser().parsestr(file.read_text(encoding="utf-8"))
    plain = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert plain == ["fleet-voice[embedded,server,speech,workbench]"]
    extras = {"dev", "embedded", "mic", "postgres", "server", "speech", "workbench"}
    assert set(metadata.get_all("Provides-Extra", [])) == extras
    assert {line.partition(",")[0] for line in metadata.get_all("Project-URL", [])} > {"Changelog", "Documentation"}


@pytest.mark.parametrize(
    "library", ["aiomqtt", "aiosqlite", "paho-mqtt", "prometheus-client", "redis", "uvicorn", "websockets"]
)
def test_a_library_whose_internals_are_used_has_an_upper_bound(library: str) -> None:
    """docs/adr/0028-library-internals.md lists them."""
    asked = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
    [bounds] = [one for one in asked if re.match(rf"{library}\b", one)]
    assert re.search(r",<\d", bounds)


def test_without_its_dependencies_it_names_the_extra_in_one_line(unpacked: Path) -> None:
    done = run(unpacked, "up", site=False)
    assert done.returncode == 1
    assert done.stderr.startswith("fleet: the package ") and done.stderr.count("\n") == 1
    assert "pip install 'fleet-voice[server]'" in done.stderr
