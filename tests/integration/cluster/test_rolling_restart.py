"""A rolling restart of all roles, each a process of its own, while devices and clients talk."""

import asyncio
from pathlib import Path

import pytest

from fleet.workbench.cluster.check import run
from fleet.workbench.cluster.check.judge import Verdict
from fleet.workbench.cluster.check.run import CheckOptions, check
from fleet.workbench.conformance.own_server import steered
from fleet.workbench.local_servers import module_command
from tests.support.forked_programs import fork_programs
from tests.support.patience import lengthen
from tests.support.patient_module import COMMAND
from tests.support.sim_stage import patient

CHECK = "fleet.workbench.cluster.check"
WAITS = (
    f"{CHECK}.bootstrap_poller._ANSWER_SECONDS",
    f"{CHECK}.device_user._HELLO_SECONDS",
    f"{CHECK}.device_user._SETTLE_SECONDS",
    f"{CHECK}.device_user._TURN_SECONDS",
    f"{CHECK}.gateway_client._ANSWER_SECONDS",
    f"{CHECK}.gateway_client._OPEN_SECONDS",
    f"{CHECK}.run._BOOT_SECONDS",
    "fleet.workbench.cluster.role_process.READY_SECONDS",
)
MODELS = {"llm_timeout": 480.0, "llm_silence_seconds": 240.0, "asr_timeout": 240.0, "tts_timeout": 240.0}


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let users, devices and processes wait longer for each other: only what gets lost counts."""
    lengthen(monkeypatch, WAITS)
    monkeypatch.setattr(module_command, "RUN_MODULE", COMMAND)
    fork_programs(monkeypatch)
    monkeypatch.setattr(run, "_PROFILE", patient(run._PROFILE))
    monkeypatch.setattr(
        run, "steered", lambda models: {**steered(models), **MODELS, "lease_seconds": 30.0, "drain_seconds": 60.0}
    )


async def hold(out: Path, limit: float, *, each: int, **options: int) -> Verdict:
    async with asyncio.timeout(limit):
        verdict = await check(CheckOptions(out, pause=1.0, workers=each, edges=each, **options))
    assert not verdict.faults, "\n".join(f"{fault.rule}: {fault.detail}" for fault in verdict.faults)
    several = [f"{role}-{number}" for role in ("worker", "edge") for number in range(1, each + 1)]
    assert [restart.name for restart in verdict.restarts] == [*several, "gateway-1", "api-1"]
    assert verdict.turns == verdict.answered == verdict.calls
    assert all(restart.turns for restart in verdict.restarts), "nobody talked while a process was replaced"
    return verdict


async def test_a_rolling_restart_of_all_roles_loses_nothing(tmp_path: Path) -> None:
    verdict = await hold(tmp_path, 480, each=1, conversations=3, clients=1)
    assert verdict.users == 4
    assert verdict.api_requests > 0


@pytest.mark.slow
async def test_nor_does_it_under_fifty_conversations(tmp_path: Path) -> None:
    verdict = await hold(tmp_path, 900, each=2, conversations=50, clients=4)
    assert verdict.users == 54
