import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from fleet.ground import log
from tests.support.virtual_time import elapse


class Writes(io.StringIO):
    """A stream that keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def write(self, text: str) -> int:
        self.calls.append(text)
        return super().write(text)


@pytest.fixture
def writes() -> Iterator[Writes]:
    stream, root = Writes(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log.configure("info", "json", pii=False, stream=stream)
    yield stream
    root.handlers[:], root.level = handlers, level


def lines(**options: object) -> list[str]:
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log.configure("info", options.get("form", "json"), pii=bool(options.get("pii")), stream=stream)  # type: ignore[arg-type]
    logger = logging.getLogger("a.logger")
    with log.fields(device="aa", session="s"):
        logger.info("turn begins", extra={"turn": "t", "pii": {"text": "你好"}})
    logger.debug("too fine")
    logger.info("outside")
    root.handlers[:], root.level = handlers, level
    return stream.getvalue().splitlines()


def test_json_lines_carry_the_fields_of_their_context() -> None:
    inside, outside = map(json.loads, lines())
    assert (inside["message"], inside["device"], inside["session"], inside["turn"]) == ("turn begins", "aa", "s", "t")
    assert "device" not in outside


def test_what_people_say_is_left_out_unless_it_is_wanted() -> None:
    assert "你好" not in "".join(lines())
    assert "你好" in "".join(lines(pii=True))
    assert "你好" not in "".join(lines(form="console"))


def test_console_lines_are_for_people() -> None:
    assert "turn begins" in lines(form="console")[0]
    assert "turn=t" in lines(form="console")[0]


def test_one_device_is_looked_at_closely_while_the_others_are_not() -> None:
    stream, root, ours = io.StringIO(), logging.getLogger(), logging.getLogger("fleet.a.part")
    handlers, level = root.handlers[:], root.level
    log.configure("info", "json", pii=False, stream=stream)

    def tell(about: str) -> None:
        with log.fields(device=about):
            ours.debug("by its context")
            ours.info("an ordinary line")
        ours.debug("by its own field", extra={"device": about})
        logging.getLogger("a.library").debug("not ours", extra={"device": about})

    try:
        tell("aa")
        log.watch_devices(frozenset({"aa"}))
        tell("aa")
        tell("bb")
        log.watch_devices(frozenset())
        tell("aa")
        assert not ours.isEnabledFor(logging.DEBUG), "the lines of all others cost nothing again"
    finally:
        log.watch_devices(frozenset())
        root.handlers[:], root.level = handlers, level
    told = [(line["device"], line["message"]) for line in map(json.loads, stream.getvalue().splitlines())]
    assert told == [
        ("aa", "an ordinary line"),
        ("aa", "by its context"),
        ("aa", "an ordinary line"),
        ("aa", "by its own field"),
        ("bb", "an ordinary line"),
        ("aa", "an ordinary line"),
    ]


def said(text: str) -> list[str]:
    return [json.loads(line)["message"] for line in text.splitlines()]


async def test_lines_are_collected_and_written_together_in_order(writes: Writes) -> None:
    logger = logging.getLogger("a.logger")
    for word in "abc":
        logger.info(word)
    assert not writes.calls
    await elapse(log.COLLECT_SECONDS)
    logger.info("d")
    await elapse(log.COLLECT_SECONDS)
    assert [said(text) for text in writes.calls] == [["a", "b", "c"], ["d"]]


async def test_a_warning_writes_all_lines_at_once(writes: Writes) -> None:
    logger = logging.getLogger("a.logger")
    for level in (logging.INFO, logging.WARNING, logging.INFO, logging.ERROR, logging.INFO):
        logger.log(level, "%d", level)
    assert [said(text) for text in writes.calls] == [["20", "30"], ["20", "40"]]
    logging.getLogger().handlers[0].flush()
    assert said(writes.calls[-1]) == ["20"]


async def test_collected_lines_are_bounded(writes: Writes) -> None:
    logger = logging.getLogger("a.logger")
    for number in range(1000):
        logger.info("%d", number, extra={"text": "x" * 1000})
    assert 5 < len(writes.calls) < 100
    await elapse(log.COLLECT_SECONDS)
    assert said(writes.getvalue()) == [str(number) for number in range(1000)]


def test_without_an_event_loop_every_line_is_written_at_once(writes: Writes) -> None:
    for word in "ab":
        logging.getLogger("a.logger").info(word)
        assert said(writes.calls[-1]) == [word]


def test_any_field_can_be_written(writes: Writes) -> None:
    values = {"half": "\ud83d", "number": float("nan"), "thing": ValueError("x"), "map": {"k": (1, None)}, "text": "好"}
    for name, value in values.items():
        logging.getLogger("a.logger").info("m", extra={name: value})
    lines = [json.loads(text) for text in writes.calls]
    assert [line.get(name) for line, name in zip(lines, values, strict=True)] == [
        "\ud83d", None, "x", {"k": [1, None]}, "好",
    ]  # fmt: skip


def test_the_time_of_a_line_is_utc_in_milliseconds() -> None:
    record = logging.makeLogRecord({"created": 1795446392.0679})
    line = json.loads(log.JsonFormatter(pii=False).format(record))
    assert datetime.fromisoformat(line["time"]) == datetime(2026, 11, 23, 15, 6, 32, 67_000, UTC)
