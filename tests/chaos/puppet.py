"""Runs a role of fleet as `python -m fleet` does, and strikes itself or another process exactly at a line of its log.

Orders come on standard input, one JSON object a line: `message`, `nth`, `where` (fields that the line must have),
`signal`, and `pids` (this process if empty). A new order replaces the one before; an empty object cancels it. What
happens is what a signal from outside at this very moment would do, but no signal from outside comes that precisely.
"""

import json
import logging
import os
import runpy
import signal
import sys
import threading
from collections.abc import Mapping

from fleet.ground import log as fleet_log


class Trap:
    """The order that waits for its line."""

    def __init__(self) -> None:
        self._order: dict[str, object] = {}
        self._left = 0
        self._lock = threading.Lock()

    def set(self, order: dict[str, object]) -> None:
        with self._lock:
            self._order, self._left = order, int(str(order.get("nth", 1)))

    def see(self, record: logging.LogRecord) -> None:
        """Look at a line that was just written."""
        if record.msg != self._order.get("message") or not self._matches(record):
            return
        with self._lock:
            self._left -= 1
            if self._left:
                return
            order, self._order = self._order, {}
        _strike(order)

    def _matches(self, record: logging.LogRecord) -> bool:
        where = self._order.get("where")
        if not isinstance(where, Mapping) or not where:
            return True
        fields = {**fleet_log._context.get(), **vars(record)}
        return all(fields.get(name) == value for name, value in where.items())


def _strike(order: Mapping[str, object]) -> None:
    number = signal.Signals(int(str(order["signal"])))
    pids = order.get("pids") or [os.getpid()]
    line = {"level": "debug", "message": "trap sprung", "at": order["message"], "signal": number.name, "pids": pids}
    for handler in logging.getLogger().handlers:
        handler.flush()
    os.write(2, (json.dumps(line) + "\n").encode())
    for pid in pids if isinstance(pids, list) else []:
        try:
            os.kill(int(pid), number)
        except ProcessLookupError:
            continue


def _listen(trap: Trap) -> None:
    for line in sys.stdin:
        trap.set(json.loads(line))


def main() -> None:
    """Run `fleet` with this process's arguments."""
    trap = Trap()
    original = logging.Logger.callHandlers

    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        original(self, record)
        trap.see(record)

    logging.Logger.callHandlers = call_handlers  # type: ignore[method-assign]
    threading.Thread(target=_listen, args=(trap,), daemon=True).start()
    sys.argv = ["fleet", *sys.argv[1:]]
    runpy.run_module("fleet", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
