"""The server's records of calls, as the chaos harness reads them."""

import pytest

from tests.chaos.calls import read


@pytest.mark.parametrize(
    ("state", "result", "meaning"),
    [
        ("S", "", ("sent", "")),
        ("U", "", ("unknown", "")),
        ("U", '["ok", "late"]', ("unknown", "")),
        ("N", "", ("not_sent", "")),
        ("D", '["ok", "done"]', ("ok", "done")),
        ("D", '["error", "it burns"]', ("error", "it burns")),
    ],
)
def test_a_record_is_understood(state: str, result: str, meaning: tuple[str, str]) -> None:
    assert read(state, result) == meaning
