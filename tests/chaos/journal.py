"""Everything that devices do and meet, in memory and on disk."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from tests.chaos.history import Execution


class Journal:
    """Lines of JSON in one file; executions are kept as well.

    Args:
        path: The file.
        clock: Seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self.executions: list[Execution] = []
        self._clock = clock
        self._file: TextIO = path.open("w", buffering=1, encoding="utf-8")

    def note(self, device: str, what: str, **fields: object) -> None:
        at, wall = round(self._clock(), 3), time.strftime("%H:%M:%S", time.gmtime())
        wall += f".{time.time_ns() // 1_000_000 % 1000:03d}"
        line = {"at": at, "time": wall, "device": device, "what": what}
        self._file.write(json.dumps({**line, **{key: one for key, one in fields.items() if one is not None}}) + "\n")

    def execute(self, execution: Execution) -> None:
        """Write an execution down, on disk too before the tool acts."""
        self.executions.append(execution)
        self.note(execution.device, "executed", call=execution.call, turn=execution.turn, token=execution.token)

    def close(self) -> None:
        self._file.close()
