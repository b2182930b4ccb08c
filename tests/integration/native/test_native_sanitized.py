"""The native part of the audio socket under AddressSanitizer and UndefinedBehaviorSanitizer."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "fleet" / "roles" / "edge" / "transport" / "native"
FOUND = 23
"""Exit code that the sanitizers are told to use."""


def run_make(build: Path, *arguments: str) -> str:
    command = ["make", "-C", str(SOURCES), f"BUILD={build}", f"PYTHON={sys.executable}", *arguments]
    return run(command, None)


def run(command: list[str], environment: dict[str, str] | None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment, cwd=ROOT)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def test_fuzzer_finds_nothing_in_the_parts_without_python(tmp_path: Path) -> None:
    """Ten million inputs are `make fuzz-random`, which takes some ten minutes."""
    assert "every promise kept" in run_make(tmp_path, "fuzz-random", "FUZZ_ROUNDS=30000")


def test_whole_module_runs_without_a_fault(tmp_path: Path) -> None:
    run_make(tmp_path, "sanitize")
    libraries = [run(["gcc", f"-print-file-name={name}"], None).strip() for name in ("libasan.so", "libubsan.so")]
    environment = {
        **os.environ,
        # The interpreter is not built with them, so they must be there before it.
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": f"detect_leaks=0:exitcode={FOUND}",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Each object of its own, so that AddressSanitizer sees its end.
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(tmp_path / "sanitized"),
    }
    tests = ["tests/unit/roles/edge/transport/test_datagrams.py", "tests/fuzz/test_targets.py"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-k", "datagrams or native", *tests]
    run(command, environment)
