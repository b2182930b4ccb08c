"""The main loop of the firmware: one worker handles everything that changes the state of the device, one at a time.

A pass handles the events that are set, in a fixed order, and then the tasks that were scheduled before the pass began.
So the effect of a state change is handled one pass later, and a handler that waits delays everything else.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from enum import IntEnum

from fleet.ground.errors import Overloaded

Work = Callable[[], Awaitable[None]]

MOST_TASKS = 256


class Flag(IntEnum):
    """Events, in the order in which a pass handles them."""

    ERROR = 1
    STATE_CHANGED = 2
    BUTTON = 3
    PRESSED = 4
    RELEASED = 5
    SEND_AUDIO = 6
    WAKE_WORD = 7
    DRAINED = 8
    TICK = 9


class MainLoop:
    """Events and tasks, worked off by `run`."""

    def __init__(self) -> None:
        self._work: dict[Flag, Work] = {}
        self._set: set[Flag] = set()
        self._tasks: deque[Work] = deque()
        self._wake = asyncio.Event()

    def on(self, flag: Flag, work: Work) -> None:
        """Register the handler of an event."""
        self._work[flag] = work

    def set(self, flag: Flag) -> None:
        """Raise an event; raised twice before it is handled, it is handled once."""
        self._set.add(flag)
        self._wake.set()

    def schedule(self, task: Work) -> None:
        """Queue a task.

        Raises:
            Overloaded: 256 tasks wait: the loop hangs or the server floods.
        """
        if len(self._tasks) >= MOST_TASKS:
            raise Overloaded("the simulated device's main loop")
        self._tasks.append(task)
        self._wake.set()

    async def run(self) -> None:
        """Handle events and tasks until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.run_pass()

    async def run_pass(self) -> None:
        """Handle the events and tasks that exist when the pass begins."""
        flags, self._set = self._set, set()
        tasks, self._tasks = self._tasks, deque()
        for flag in sorted(flags):
            if flag in self._work:
                await self._work[flag]()
        for task in tasks:
            await task()
