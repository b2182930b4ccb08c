import os
import time

from fleet.workbench.bench.usage import CpuMeter, Usage


def test_usage_of_this_process_grows_with_its_work() -> None:
    before = Usage.of([os.getpid()])
    sum(range(3_000_000))
    after = Usage.of([os.getpid()])
    assert after.cpu > before.cpu
    assert after.memory > 1_000_000


def test_usage_of_several_processes_is_their_sum() -> None:
    one, two = Usage.of([os.getpid()]), Usage.of([os.getpid(), os.getpid()])
    assert two.memory >= 1.9 * one.memory


async def compute() -> str:
    end = time.process_time() + 0.05
    while time.process_time() < end:
        """Use the processor."""
    return "done"


async def test_a_meter_returns_the_result_with_what_it_cost_each_part() -> None:
    meter = CpuMeter({"this": [os.getpid()], "none": []})
    found = await meter.during(compute())
    assert found.result == "done"
    assert found.cpu["this"] >= 0.04
    assert found.seconds >= found.cpu["this"] * 0.5
    assert found.cpu["none"] == 0.0


async def test_what_a_part_uses_at_rest_is_subtracted() -> None:
    meter = CpuMeter({"this": [os.getpid()]})
    meter.idle = {"this": 1000.0}
    assert (await meter.during(compute())).cpu == {"this": 0.0}
    await meter.rest(0.0)
    assert meter.idle["this"] >= 0.0
