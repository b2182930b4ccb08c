from pathlib import Path

from fleet.workbench.demo.memory import memory_of_children


def process(proc: Path, pid: int, parent: int, size: str) -> None:
    (proc / str(pid)).mkdir()
    lines = f"Name:\tx:y\nPPid:\t{parent}\n" + (f"VmRSS:\t  {size} kB\n" if size else "")
    (proc / str(pid) / "status").write_text(lines)


def test_children_and_their_children_count_but_not_the_parent(tmp_path: Path) -> None:
    for pid, parent, size in ((10, 1, "1000"), (11, 10, "20"), (12, 11, "3"), (13, 1, "500"), (14, 10, "")):
        process(tmp_path, pid, parent, size)
    assert memory_of_children(10, tmp_path) == 23 * 1024


def test_a_process_without_children_and_a_system_without_proc_have_none(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, "1000")
    assert memory_of_children(10, tmp_path) == 0
    assert memory_of_children(10, tmp_path / "none") == 0
