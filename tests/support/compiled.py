"""Compiles all that a run of tests imports: `python -m tests.support.compiled`.

Otherwise each process of a run does so, all at the same time, and rewrites the assertions of the same files: five
seconds of a core in each.
"""

import compileall
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _pytest.assertion import rewrite

ROOT = Path(__file__).parents[2]
WORKERS = 2
OF_PYTEST = re.compile(r"/(test_\w+|conftest)\.py$")
"""Files that only pytest imports, which compiles them itself."""


def main() -> None:
    found = sorted([*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/conftest.py")])
    with ProcessPoolExecutor(WORKERS) as pool:
        list(pool.map(_rewrite, found, chunksize=20))
    for folder in ("fleet", "tests"):
        compileall.compile_dir(ROOT / folder, quiet=2, workers=WORKERS, rx=OF_PYTEST)


def _rewrite(file: Path) -> None:
    """Do what pytest does with a file of tests, but for running it."""
    kept = rewrite.get_cache_dir(file)
    kept.mkdir(exist_ok=True)
    compiled = kept / f"{file.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(file, compiled) is None:
        state: Any = SimpleNamespace(trace=print)
        digest, code = rewrite._rewrite_test(file, None)  # type: ignore[arg-type]
        rewrite._write_pyc(state, code, digest, compiled)


if __name__ == "__main__":
    main()
