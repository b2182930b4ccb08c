import importlib.util
import os
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.support.compiled import compile_file, compiled, outdated


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("fleet/module.py", "tests/support/module.py", "tests/test_module.py", "tests/conftest.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("assert 1 == 1\n", encoding="utf-8")
    return tmp_path


def test_what_is_compiled_is_taken_by_those_that_import_it(project: Path) -> None:
    files = list(outdated(project))
    assert len(files) == 4
    for file in files:
        compile_file(file)
        if file.parent.name == "tests":
            assert rewrite._read_pyc(file, rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}")
        else:
            assert compiled(file) == Path(importlib.util.cache_from_source(str(file)))
    assert list(outdated(project)) == []


@pytest.mark.parametrize("name", ["fleet/module.py", "tests/test_module.py"])
@pytest.mark.parametrize("text", ["assert 2 == 2\n", "assert 1 == 1 # as before\n"])
def test_a_changed_file_is_compiled_again(project: Path, name: str, text: str) -> None:
    for file in outdated(project):
        compile_file(file)
    changed = project / name
    later = changed.stat().st_mtime + 2
    changed.write_text(text, encoding="utf-8")
    os.utime(changed, (later, later))
    assert list(outdated(project)) == [changed]


def test_a_file_with_a_fault_is_left_to_those_that_import_it(project: Path) -> None:
    faulty = project / "fleet/module.py"
    faulty.write_text("assert (\n", encoding="utf-8")
    compile_file(faulty)
    assert faulty in outdated(project)
