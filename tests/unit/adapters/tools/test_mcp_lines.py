import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.tools import mcp_lines
from fleet.adapters.tools.mcp_lines import LARGEST_MESSAGE, ByteRate, LineSplitter, OversizedLine


@given(st.lists(st.binary(max_size=30)))
def test_lines_do_not_depend_on_how_they_came(pieces: list[bytes]) -> None:
    whole, lines = b"".join(pieces), LineSplitter()
    found = [line for piece in pieces for line in lines.feed(piece)]
    *ended, _ = whole.split(b"\n")
    assert found == [line.strip() for line in ended if line.strip()]


def test_a_line_that_is_too_long_is_thrown_away_and_the_next_is_read() -> None:
    lines = LineSplitter()
    found = lines.feed(b'{"jsonrpc": "2.0", "id": 7, "result": "' + b"x" * LARGEST_MESSAGE)
    found += lines.feed(b"x" * LARGEST_MESSAGE)
    found += lines.feed(b'"}\n{}\n')
    assert found == [OversizedLine(7), b"{}"]


def test_what_is_kept_of_an_endless_line_is_bounded() -> None:
    lines = LineSplitter()
    found = [one for _ in range(100) for one in lines.feed(b"x" * 65_536)]
    assert found == [OversizedLine(None)]
    assert len(lines._rest) == 0


def test_a_long_line_that_ends_in_the_same_piece_is_thrown_away() -> None:
    assert LineSplitter().feed(b"x" * (LARGEST_MESSAGE + 1) + b"\n{}\n") == [OversizedLine(None), b"{}"]


async def test_a_flood_is_taken_slowly_after_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    pace = ByteRate()
    monkeypatch.setattr(asyncio, "sleep", sleep)
    await pace.take(mcp_lines.BURST)
    assert slept == []
    await pace.take(mcp_lines.PER_SECOND)
    assert slept == [pytest.approx(1.0, abs=0.2)]
