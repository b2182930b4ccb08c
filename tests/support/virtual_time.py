"""An event loop whose time passes only while nothing else is left to do, and then at once.

A test on it needs no real time for its pauses and limits, and a busy machine changes none of its results. Real
datagrams on loopback and jobs in threads work: the loop looks for them before it lets time pass.

Our own, as looptime 0.9 lets real time count too where there is real input, and ends a wait for a thread early.
"""

import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any

_STEP_SECONDS = 0.05
_OWN_SOCKETS = 1
"""A loop listens to itself, as threads wake it."""


class _Selector(selectors.DefaultSelector):
    """Waits for no time; what should have been waited is added to `now`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = time.monotonic()
        """In seconds; begins at the real time, as some code compares both."""
        self.jobs = 0
        """Jobs in threads that run: they end in real time."""
        self._threads = threading.active_count()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready and self._may_be_called():
            # The kernel may deliver what was just sent only when it gets the processor.
            time.sleep(0)
            ready = super().select(0)
        # In short steps: while the whole process stands still, no job comes further, and that is no time to wait.
        left = timeout if self.jobs else 0.0
        while not ready and left > 0:
            ready = super().select(min(left, _STEP_SECONDS))
            left -= _STEP_SECONDS
        if not ready:
            self.now += timeout
        return ready

    def _may_be_called(self) -> bool:
        """Return whether the loop has a socket besides its own, or somebody has started a thread beside it.

        A thousand vain looks at the processor's other users cost 15 ms of a core, and take a second where it is busy.
        """
        return len(self.get_map()) > _OWN_SOCKETS or threading.active_count() > self._threads


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Use it through `pytest_asyncio_loop_factories` of a conftest.py, for all tests of a folder."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def stall(self, seconds: float) -> None:
        """Let time pass in which nothing runs, as on a machine that is too busy."""
        self._virtual.now += seconds

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._virtual.jobs += 1
        future.add_done_callback(self._job_done)
        return future

    def _job_done(self, _: asyncio.Future[Any]) -> None:
        self._virtual.jobs -= 1


async def elapse(seconds: float) -> None:
    """Let virtual time pass; a test that would really wait fails."""
    assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop), "this would take real time"
    await asyncio.sleep(seconds)
