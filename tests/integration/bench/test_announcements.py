"""`scripts/bench announcements` with a small crowd."""

from pathlib import Path

from tests.support.bench_command import run_bench


def test_receipts_are_what_the_devices_heard(tmp_path: Path) -> None:
    words = ("--devices", "40", "--busy", "4", "--old", "8", "--rate", "50")
    printed, found = run_bench(tmp_path, "announcements", *words)
    assert "took the clip" in printed
    verdict = found["verdict"]
    assert (verdict["devices"], verdict["differing"], verdict["wrong"]) == (40, 0, []), verdict
    assert (verdict["twice"], found["syntheses"]) == (0, 1)
    assert found["idle"] + found["busy"] + found["old"] == found["devices"] == found["online"]
    # On a busy machine an idle device may ask for its clip too late, and is shown the text, too.
    assert verdict["played"] + verdict["shown"] >= 40
