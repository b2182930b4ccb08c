"""Runs pytest again and again, each time in a fork of a process that has imported the libraries already.

    python -m tests.mutants.forks LIBRARY…

reads a request, one JSON object per line, from standard input, and answers each with one line. The libraries are
imported once; fleet and the tests are imported by every run, so each run sees the files as they are then.
"""

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
from pathlib import Path
from typing import Any

from tests.mutants.watchers import FirstFailure, Measurement

MARK = "MUTANT_RUN"


def _child(request: dict[str, Any], mark: str) -> int:
    import pytest

    os.setsid()
    os.environ[MARK] = mark
    sink = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    source = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((source, 0), (sink, 1), (sink, 2)):
        os.dup2(old, new)
    resource.setrlimit(resource.RLIMIT_CPU, (int(request["cpu"]), int(request["cpu"]) + 5))
    watcher = Measurement(request["measure"]) if request.get("measure") else FirstFailure()
    code = pytest.main([*request["arguments"], *request["tests"]], plugins=[watcher])
    Path(request["answer"]).write_text(json.dumps({"code": int(code), **watcher.result()}))
    return 0


def _fork(request: dict[str, Any], mark: str) -> dict[str, Any]:
    """Run pytest once and return what came out; without `code` when it did not come to an end."""
    answer = Path(request["answer"])
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = _child(request, mark)
        finally:
            os._exit(code)
    end = os.pidfd_open(child)
    try:
        # Nothing comes in meanwhile: when the input is readable, whoever asked is gone.
        ready, _, _ = select.select([end, sys.stdin], [], [], request["wall"])
        if end not in ready:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    finally:
        os.close(end)
        _kill_what_is_left(child, mark)
    return json.loads(answer.read_text()) if answer.exists() else {}


def _kill_what_is_left(session: int, mark: str) -> None:
    """End the servers of a run that could not end them itself; they have its session or its mark."""
    wanted = f"{MARK}={mark}".encode()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            of_session = int((process / "stat").read_text().rpartition(")")[2].split()[3]) == session
            if of_session or wanted in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def main() -> None:
    """Import libraries, then answer requests until the input ends."""
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(BrokenPipeError):
        for number, line in enumerate(sys.stdin):
            print(json.dumps(_fork(json.loads(line), f"{os.getpid()}-{number}")), flush=True)


if __name__ == "__main__":
    main()
