import asyncio

from fleet.workbench.sim.records.loop_lag import LoopLag


def test_only_the_stalls_since_a_time_count() -> None:
    now = 1.0
    loop_lag = LoopLag(lambda: now)
    loop_lag.record(0.2)
    now = 5.0
    loop_lag.record(0.1)
    loop_lag.record(0.001)
    assert round(loop_lag.stalled_since(0.5), 6) == 0.3
    assert round(loop_lag.stalled_since(4.0), 6) == 0.1
    assert loop_lag.stalled_since(6.0) == 0.0
    assert loop_lag.worst == 0.2


async def test_a_stall_counts_before_the_timer_that_measures_it_has_fired() -> None:
    now = 1.0
    loop_lag = LoopLag(lambda: now)
    measuring = asyncio.create_task(loop_lag.run())
    await asyncio.sleep(0)
    assert loop_lag.stalled_since(0.5) == 0.0
    now = 1.32
    assert round(loop_lag.stalled_since(1.2), 6) == 0.3
    measuring.cancel()
    await asyncio.wait([measuring])
    assert loop_lag.stalled_since(1.2) == 0.0
