"""`scripts/bench interruptions` in short: real edge, recognition and voices, a simulated realtime device."""

from pathlib import Path

import pytest

from tests.support.bench_command import run_bench

pytestmark = pytest.mark.conversation

COUNT = 1


def test_what_speech_over_an_answer_does_is_measured(tmp_path: Path) -> None:
    printed, found = run_bench(tmp_path, "interruptions", "--count", str(COUNT))
    assert "went on" in printed
    # How many go on and how many interrupt depends on the speed of recognition: that is what the benchmark is for.
    assert found["verdicts"]
    assert any(one["answered"] for one in found["interrupted"])
    assert len(found["passed"]) == len(found["interrupted"]) == COUNT
    assert found["violations"] == []
