from fleet.core.controls import failure_report


def test_a_failed_control_is_reported_with_its_tool_where_it_is_known() -> None:
    assert failure_report("volume", "no\nsound") == 'tool failed {"tool":"volume","error":"no\\nsound"}'
    assert failure_report("", "no sound") == 'tool failed {"error":"no sound"}'
