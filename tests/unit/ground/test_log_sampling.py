import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fleet.ground import log, log_sampling
from fleet.ground.log_sampling import SUMMARY, SUMMARY_SECONDS, SampledLogger, Sampling, TokenBuckets


@contextmanager
def sampled(now: list[float]) -> Iterator[tuple[logging.Logger, io.StringIO]]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log.JsonFormatter(pii=False))
    handler.addFilter(
        Sampling(1.0, 50, lambda record: getattr(record, "device", ""), handler.handle, clock=lambda: now[0])
    )
    logger = logging.getLogger("fleet.sampled")
    logger.propagate, level = False, logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield logger, stream
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = True, level


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_of_a_flood_the_first_lines_are_written_and_then_a_count_a_minute() -> None:
    now = [0.0]
    with sampled(now) as (logger, stream):
        for second in range(600):
            now[0] = second
            for number in range(100):
                logger.info("bootstrap", extra={"device": f"{second}-{number}"})
        lines = read(stream)
    told = [line for line in lines if line["message"] == SUMMARY]
    assert len(lines) - len(told) == 50 + 599
    assert len(told) == 9
    assert {line["of"] for line in told} == {"bootstrap"}
    assert 60 * 99 - 60 <= told[-1]["lines"] <= 60 * 100
    assert told[-1]["seconds"] == SUMMARY_SECONDS


def test_ten_devices_that_boot_every_minute_are_all_seen() -> None:
    now = [0.0]
    with sampled(now) as (logger, stream):
        for minute in range(60):
            now[0] = minute * 60.0
            for number in range(10):
                logger.info("bootstrap", extra={"device": f"device {number}"})
        assert len(read(stream)) == 600


def test_a_loud_device_hides_no_other_and_a_loud_message_no_other() -> None:
    now = [0.0]
    with sampled(now) as (logger, stream):
        for _ in range(1000):
            logger.warning("malformed message", extra={"device": "loud"})
        logger.warning("malformed message", extra={"device": "other"})
        logger.warning("something else", extra={"device": "loud"})
        lines = [(line["message"], line["device"]) for line in read(stream)]
    assert lines.count(("malformed message", "loud")) == 5
    assert lines[-2:] == [("malformed message", "other"), ("something else", "loud")]


def test_debug_lines_pass_and_what_was_left_out_is_counted() -> None:
    before = log_sampling.left_out["lines"]
    with sampled([0.0]) as (logger, stream):
        for _ in range(100):
            logger.debug("detail")
            logger.info("line")
        assert len(read(stream)) == 150
    assert log_sampling.left_out["lines"] - before == 50


def test_budgets_are_bounded_in_number() -> None:
    budgets = TokenBuckets(1.0, 1)
    for number in range(3 * log_sampling.MOST_KEYS):
        assert budgets.take((str(number),), 0.0)
    assert len(budgets._due) == log_sampling.MOST_KEYS


def test_a_field_from_outside_is_cut() -> None:
    with sampled([0.0]) as (logger, stream):
        logger.info("line", extra={"origin": "x" * 1_000_000})
        assert len(stream.getvalue()) < 3_000


def test_no_record_is_made_of_a_line_whose_message_is_over_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[logging.LogRecord] = []
    sampling = Sampling(1.0, 3, lambda _: "", lambda _: None, clock=lambda: 0.0)
    monkeypatch.setattr(SampledLogger, "sampling", sampling)
    logger = SampledLogger("fleet.sampled", logging.INFO)

    def keep(record: logging.LogRecord) -> bool:
        records.append(record)
        return sampling.filter(record)

    logger.addFilter(keep)
    before = log_sampling.left_out["lines"]
    for _ in range(5):
        logger.info("device online")
    logger.warning("device offline")
    assert [record.msg for record in records] == ["device online"] * 3 + ["device offline"]
    assert log_sampling.left_out["lines"] - before == 2
