from fleet.workbench.sim.records.loop_lag import Pulse


def test_only_the_stalls_since_a_time_count() -> None:
    now = 1.0
    pulse = Pulse(lambda: now)
    pulse.record(0.2)
    now = 5.0
    pulse.record(0.1)
    pulse.record(0.001)
    assert round(pulse.lost(0.5), 6) == 0.3
    assert round(pulse.lost(4.0), 6) == 0.1
    assert pulse.lost(6.0) == 0.0
    assert pulse.worst == 0.2
