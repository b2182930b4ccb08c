from pathlib import Path

from fleet.ground.autogroup import share_autogroup


def shown(proc: Path, pid: str, text: str) -> Path:
    (proc / pid).mkdir(exist_ok=True)
    (proc / pid / "autogroup").write_text(text)
    return proc / pid / "autogroup"


def test_another_session_gets_the_nice_of_this_one(tmp_path: Path) -> None:
    shown(tmp_path, "self", "/autogroup-7 nice -10\n")
    other = shown(tmp_path, "42", "/autogroup-8 nice 0\n")
    share_autogroup(42, tmp_path)
    assert other.read_text() == "-10\n"


def test_a_usual_one_changes_nothing(tmp_path: Path) -> None:
    shown(tmp_path, "self", "/autogroup-7 nice 0\n")
    other = shown(tmp_path, "42", "/autogroup-8 nice 3\n")
    share_autogroup(42, tmp_path)
    assert other.read_text() == "/autogroup-8 nice 3\n"


def test_without_such_groups_and_processes_nothing_happens(tmp_path: Path) -> None:
    share_autogroup(42, tmp_path)
    shown(tmp_path, "self", "something else\n")
    share_autogroup(42, tmp_path)
    shown(tmp_path, "self", "/autogroup-7 nice 5\n")
    share_autogroup(42, tmp_path)
