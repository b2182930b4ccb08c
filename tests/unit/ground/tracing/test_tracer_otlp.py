import pytest

from fleet.ground.tracing.tracer_otlp import read_traceparent


def test_a_traceparent_names_trace_and_span() -> None:
    found = read_traceparent(f"00-{10:032x}-{11:016x}-01")
    assert found is not None
    assert (found.trace_id, found.span_id, found.is_remote, int(found.trace_flags)) == (10, 11, True, 1)


@pytest.mark.parametrize(
    "text", ["", "00", "00-1-2-01", f"00-{0:032x}-{0:016x}-01", f"00-{'x' * 32}-{11:016x}-01", "-" * 60]
)
def test_what_names_nothing_begins_a_trace_of_its_own(text: str) -> None:
    assert read_traceparent(text) is None
