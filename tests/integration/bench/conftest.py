"""What tests of the benchmarks share."""

from collections.abc import Awaitable
from typing import TypeVar

import pytest

from fleet.workbench.bench.usage import CpuMeter, Measured
from fleet.workbench.local_servers import module_command
from tests.support.forked_programs import fork_programs
from tests.support.patience import REDIS, SQL, lengthen
from tests.support.patient_module import COMMAND

T = TypeVar("T")
REST_SECONDS = 0.3


@pytest.fixture(autouse=True)
def _rest_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts use nothing at rest: on a busy machine that may be more than the little work of a test, which counts.

    What is measured at rest stays in `idle`; as nothing is subtracted, it need not be measured for seconds.
    """
    measure, rest = CpuMeter.during, CpuMeter.rest

    async def during(meter: CpuMeter, work: Awaitable[T]) -> Measured[T]:
        idle, meter.idle = meter.idle, dict.fromkeys(meter.idle, 0.0)
        try:
            return await measure(meter, work)
        finally:
            meter.idle = idle

    async def rest_shortly(meter: CpuMeter, seconds: float) -> None:
        await rest(meter, min(seconds, REST_SECONDS))

    monkeypatch.setattr(CpuMeter, "during", during)
    monkeypatch.setattr(CpuMeter, "rest", rest_shortly)


@pytest.fixture(autouse=True)
def _programs_are_forked_and_wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    lengthen(monkeypatch, (*REDIS, *SQL, "fleet.workbench.local_servers.server.READY_SECONDS"))
    monkeypatch.setattr(module_command, "RUN_MODULE", COMMAND)
    fork_programs(monkeypatch)
