"""Compiles all that a run of tests imports: `python -m tests.support.compiled`.

Otherwise each process of a run does so, all at the same time, and rewrites the assertions of the same files: five
seconds of a core in each. What is compiled already costs a tenth of a second: one look at each file.
"""

import gc
import importlib.util
import py_compile
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _pytest._version import version

ROOT = Path(__file__).parents[2]
FOLDERS = ("fleet", "tests")
WORKERS = 2
OF_PYTEST = re.compile(r"(test_\w+|conftest)\.py")
"""Files that only pytest imports, which compiles them itself."""
BY_PYTEST = f".{sys.implementation.cache_tag}-pytest-{version}.pyc"
"""How the name of a file ends that pytest has compiled."""

HEADER = 16
"""Bytes before the code in a compiled file: they say of which source it was made."""
OF_TIME, OF_TEXT = bytes(4), b"\x03\0\0\0"
"""The kinds of headers: Python writes when a source was changed and its size, pytest a sum of its text."""


def main() -> None:
    todo = list(outdated(ROOT))
    if not todo:
        return
    # Only what compiles needs these.
    from concurrent.futures import ProcessPoolExecutor

    from _pytest.assertion import rewrite  # noqa: F401 - the processes below have it then

    # The largest come first, so that both end at the same time.
    todo.sort(key=lambda file: -file.stat().st_size)
    with ProcessPoolExecutor(WORKERS, initializer=gc.disable) as pool:
        list(pool.map(compile_file, todo, chunksize=10))


def outdated(root: Path) -> Iterator[Path]:
    """Yield the files of a project which are not compiled, or were changed since."""
    for folder in FOLDERS:
        for file in (root / folder).rglob("*.py"):
            header = _header_of_pytest(file) if OF_PYTEST.fullmatch(file.name) else _header_of_python(file)
            if _read(compiled(file)) != header:
                yield file


def compiled(file: Path) -> Path:
    """Return where the code of a file is kept."""
    usual = Path(importlib.util.cache_from_source(str(file)))
    return usual.with_name(f"{file.stem}{BY_PYTEST}") if OF_PYTEST.fullmatch(file.name) else usual


def compile_file(file: Path) -> None:
    """Compile a file as whoever imports it does; what has a fault is left to them."""
    if not OF_PYTEST.fullmatch(file.name):
        py_compile.compile(str(file), quiet=2)
        return
    from _pytest.assertion import rewrite

    state: Any = SimpleNamespace(trace=print)
    kept = compiled(file)
    kept.parent.mkdir(parents=True, exist_ok=True)
    digest, code = rewrite._rewrite_test(file, None)  # type: ignore[arg-type]
    rewrite._write_pyc(state, code, digest, kept)


def _header_of_python(file: Path) -> bytes:
    found = file.stat()
    numbers = (int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
    return importlib.util.MAGIC_NUMBER + OF_TIME + b"".join(number.to_bytes(4, "little") for number in numbers)


def _header_of_pytest(file: Path) -> bytes:
    return importlib.util.MAGIC_NUMBER + OF_TEXT + importlib.util.source_hash(file.read_bytes())[:8]


def _read(kept: Path) -> bytes:
    try:
        with kept.open("rb") as opened:
            return opened.read(HEADER)
    except OSError:
        return b""


if __name__ == "__main__":
    main()
