"""The compose file, read by the real Docker Compose; no engine is needed for that."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
_LIMIT_SECONDS = 240

REQUIRED = {
    "FLEET_KEYS": "k1:0123456789abcdef0123",
    "REDIS_PASSWORD": "abc123",
    "FLEET_PUBLIC_HOST": "voice.example.org",
    "LLM_BASE_URL": "http://llm.example.org/v1",
    "LLM_MODEL": "some-model",
}


def compose(
    folder: Path, variables: dict[str, str], *arguments: str, file: Path = DEPLOY / "compose.yaml"
) -> subprocess.CompletedProcess[str]:
    """Run `docker-compose config` on the file, ours unless told otherwise, with just these variables."""
    program = Path(sys.executable).with_name("docker-compose")
    if not program.exists():
        pytest.fail("this test needs requirements-deploy.lock: scripts/test installs it", pytrace=False)
    given = folder / "variables"
    given.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    command = [str(program), "-f", str(file), "--env-file", str(given), *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
        env={"HOME": str(folder), "PATH": ""},
    )


def services(folder: Path, *profiles: str, file: Path = DEPLOY / "compose.yaml", **variables: str) -> dict[str, Any]:
    """Return the services of the file with some profiles; fail the test when Compose refuses it."""
    chosen = [argument for name in profiles for argument in ("--profile", name)]
    done = compose(folder, {**REQUIRED, **variables}, *chosen, "config", "--format", "json", file=file)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["services"]
    return found
