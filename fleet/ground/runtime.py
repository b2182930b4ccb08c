"""Running a process: its event loop, its signals, its exit code."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import uvloop

from fleet.ground import allocator
from fleet.ground.errors import ConfigError, FleetError

log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_MISCONFIGURED = 2

_NEW_OBJECTS = 10_000
"""Threshold of the youngest generation of the garbage collector; Python's default is 700."""

Main = Callable[[], Coroutine[None, None, int | None]]


def run(main: Main) -> int:
    """Run a process's main coroutine to its end and return the exit code.

    The first SIGINT or SIGTERM cancels it, so that all parts shut down in order; a second one exits at once.
    """
    allocator.tune()
    _tune_collector()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_until_signalled(main)) or 0
    except BaseExceptionGroup as group:
        return _explain(group)
    except FleetError as error:
        return _explain(error)
    finally:
        _flush_log()


async def _until_signalled(main: Main) -> int | None:
    task = asyncio.current_task()
    stopping = False

    def stop() -> None:
        nonlocal stopping
        if stopping or task is None:
            _flush_log()
            os._exit(EXIT_FAILED)
        stopping = True
        task.cancel()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_report)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await main()
    except asyncio.CancelledError:
        if not stopping:
            raise
        return 0


def _flush_log() -> None:
    for handler in logging.getLogger().handlers:
        handler.flush()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an exception that no task handles, but no failed look-up of a name.

    If a time limit cancels a connection during the look-up, uvloop leaves its future behind.
    """
    if not isinstance(context.get("exception"), socket.gaierror):
        loop.default_exception_handler(context)


def _tune_collector() -> None:
    """Collect garbage less often, and not in imported modules: it took an eighth of a worker's CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 20)


def _explain(error: BaseException) -> int:
    causes = list(_flatten(error))
    for cause in causes:
        if isinstance(cause, FleetError):
            sys.stderr.write(f"fleet: {cause}\n")
            return EXIT_MISCONFIGURED if isinstance(cause, ConfigError) else EXIT_FAILED
    log.error("crashed", exc_info=causes[0])
    return EXIT_FAILED


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _flatten(inner)
    else:
        yield error
