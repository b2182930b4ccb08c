"""Logging: constant messages with fields, as JSON or for a console.

The context adds fields to each line: device, session, turn. Speech and prompts are logged only under the key `pii`,
which is dropped unless the operator has switched it on (FLEET_LOG_PII).
"""

import asyncio
import io
import json
import logging
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from datetime import datetime
from typing import Final, Literal, TextIO

import msgspec

from fleet.ground.log_sampling import SampledLogger, Sampling

LogFormat = Literal["json", "console"]

_context: ContextVar[Mapping[str, str]] = ContextVar("fleet_log_context", default={})  # noqa: B039 - never mutated
LONGEST_FIELD = 2_000
"""In characters."""
COLLECT_SECONDS: Final = 0.05
"""How long lines below a warning are collected, to write them in one system call."""
_MOST_COLLECTED: Final = 64 * 1024
"""In characters; with more they are written at once."""
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
_TOLERANT_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, default=str)
"""For text with half a surrogate pair."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Fields:
    """Adds fields inside a `with`; a generator costs four times as much, and every message opens such a block."""

    __slots__ = ("_named", "_token")

    def __init__(self, named: Mapping[str, str]) -> None:
        self._named = named

    def __enter__(self) -> None:
        self._token = _context.set({**_context.get(), **self._named})

    def __exit__(self, *_: object) -> None:
        _context.reset(self._token)


def fields(**named: str) -> AbstractContextManager[None]:
    """Add fields (device, session, turn) to every line logged inside the block, in this task and its children."""
    return _Fields(named)


def bind(**named: str) -> None:
    """Add fields to every line logged from now on in this task and its children."""
    _context.set({**_context.get(), **named})


def _collect(record: logging.LogRecord, pii: bool) -> dict[str, object]:
    extra = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    if not pii:
        extra.pop("pii", None)
    found = {**_context.get(), **extra}
    return {key: _shorten(value) if isinstance(value, str) else value for key, value in found.items()}


def _shorten(text: str) -> str:
    """Cut a long text: clients can choose the length of some fields."""
    return text if len(text) <= LONGEST_FIELD else f"{text[:LONGEST_FIELD]}…"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, then the fields."""

    def __init__(self, *, pii: bool) -> None:
        super().__init__()
        self._pii = pii
        self._second, self._date = 0, ""

    def format(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            self._second, self._date = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        line: dict[str, object] = {
            "time": f"{self._date}.{int((record.created - second) * 1000):03}+00:00",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(_collect(record, self._pii))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        try:
            return _ENCODER.encode(line).decode()
        except (UnicodeEncodeError, TypeError):
            return _TOLERANT_ENCODER.encode(line)


class ConsoleFormatter(logging.Formatter):
    """A readable line: time, level, message, key=value."""

    def __init__(self, *, pii: bool) -> None:
        super().__init__()
        self._pii = pii

    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        pairs = " ".join(f"{key}={value}" for key, value in _collect(record, self._pii).items())
        text = f"{clock} {record.levelname.lower():7} {record.getMessage():32} {pairs}".rstrip()
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class CollectingHandler(logging.StreamHandler[io.StringIO]):
    """Collects lines and writes them every `COLLECT_SECONDS`, in order; a warning writes all at once.

    Without an event loop in the thread, lines are written at once. `logging` flushes at exit. A process that is killed
    loses the lines of the last `COLLECT_SECONDS`.
    """

    def __init__(self, target: TextIO) -> None:
        super().__init__(io.StringIO())
        self._target = target
        self._later = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that will write the lines."""

    def emit(self, record: logging.LogRecord) -> None:
        loop = None if record.levelno >= logging.WARNING else _running_loop()
        self._later = loop is not None and self.stream.tell() < _MOST_COLLECTED
        if loop is not None and self._loop is not loop:
            self._loop = loop
            loop.call_later(COLLECT_SECONDS, self._write)
        super().emit(record)  # calls `flush`
        self._later = False

    def flush(self) -> None:
        with self.lock or nullcontext():
            if text := "" if self._later else self.stream.getvalue():
                self.stream.seek(0)
                self.stream.truncate()
                self._target.write(text)
                self._target.flush()

    def _write(self) -> None:
        self._loop = None
        with suppress(OSError, ValueError):  # the target is closed
            self.flush()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _DeviceDebugFilter(logging.Filter):
    """Passes all lines of some devices, down to the level debug, and of other devices only those of the usual level.

    Without such a device it costs nothing: the level of fleet's loggers suppresses debug lines. With one, the loggers
    create debug lines of all devices, and this filter drops those of the others.
    """

    def __init__(self) -> None:
        super().__init__()
        self._devices: frozenset[str] = frozenset()
        self._handler: logging.Handler | None = None
        self._level = logging.INFO

    def install(self, handler: logging.Handler, level: int) -> None:
        self._handler, self._level = handler, level
        self.watch(self._devices)

    def watch(self, devices: frozenset[str]) -> None:
        self._devices = devices
        ours = logging.getLogger("fleet")
        if self._handler is None:
            return
        self._handler.removeFilter(self)
        ours.setLevel(logging.NOTSET)
        if devices and self._level > logging.DEBUG:
            self._handler.addFilter(self)
            ours.setLevel(logging.DEBUG)

    def covers(self, device: str) -> bool:
        return device in self._devices

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= self._level:
            return True
        return getattr(record, "device", None) in self._devices or _context.get().get("device") in self._devices


_device_filter = _DeviceDebugFilter()


def watch_devices(devices: frozenset[str]) -> None:
    """Write all lines of these devices (canonical MACs), down to the level debug; replaces the devices set before."""
    _device_filter.watch(devices)


def _subject(record: logging.LogRecord) -> str:
    """Return the device or the address of a record; empty for a device whose lines are all written."""
    device = str(getattr(record, "device", "") or _context.get().get("device", ""))
    return "" if _device_filter.covers(device) else device or str(getattr(record, "address", ""))


def configure(
    level: str, log_format: LogFormat, *, pii: bool, stream: TextIO | None = None, rate: tuple[float, int] | None = None
) -> None:
    """Send all log records to one stream in one format.

    Args:
        level: Name of the lowest level.
        log_format: Format of a line.
        pii: Whether to write speech and prompts (`pii` fields).
        stream: Standard error without it.
        rate: Lines of one message a second, and at once; without it there is no limit.
    """
    # No format has these fields; collecting them took half of the time of a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - the logging HOWTO recommends it
    handler = CollectingHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(pii=pii) if log_format == "json" else ConsoleFormatter(pii=pii))
    sampling = Sampling(*rate, _subject, handler.handle) if rate is not None else None
    if sampling is not None:
        handler.addFilter(sampling)
    SampledLogger.adopt(sampling)
    _device_filter.install(handler, logging.getLevelNamesMapping()[level.upper()])
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("alembic", "httpx", "httpx2", "httpcore", "httpcore2", "openai", "uvicorn"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLogger().level))
