import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.llm.sse import MAX_LINE, BodyReader, SseReader, WholeReader


def test_only_data_lines_are_payloads() -> None:
    data = b": hello\nevent: x\nid: 4\ndata: one\n\nretry: 5\ndata:two\r\n\r\ndata:\n\n"
    assert SseReader().feed(data) == [b"one", b"two"]


@given(st.lists(st.integers(0, 40), max_size=6))
def test_payloads_do_not_depend_on_how_the_bytes_are_cut(cuts: list[int]) -> None:
    data = 'data: {"a":"\u2028\x85"}\n\n: x\ndata: [DONE]'.encode()
    reader, got, at = SseReader(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        got += reader.feed(data[at:cut])
        at = max(at, cut)
    assert got + reader.end() == ['{"a":"\u2028\x85"}'.encode(), b"[DONE]"]


def test_the_end_gives_a_last_line_once() -> None:
    reader = SseReader()
    assert reader.feed(b"data: x") == []
    assert reader.end() == [b"x"]
    assert reader.end() == []


def test_a_line_without_an_end_becomes_too_long() -> None:
    reader = SseReader()
    reader.feed(b"x" * MAX_LINE)
    assert not reader.is_too_long
    reader.feed(b"x")
    assert reader.is_too_long


def test_a_whole_body_is_one_payload_at_its_end() -> None:
    reader = WholeReader()
    assert reader.feed(b'{"a":\n') == reader.feed(b"1}\n") == []
    assert reader.end() == [b'{"a":\n1}\n']
    assert reader.end() == []
    reader.feed(b"x" * (MAX_LINE + 1))
    assert reader.is_too_long


@pytest.mark.parametrize(
    ("body", "payloads"),
    [
        (b'\xef\xbb\xbf\r\n{"a":1}', [b'{"a":1}']),
        (b"<html>\ndata: x\n", [b"<html>\ndata: x\n"]),
        (b"[1]", [b"[1]"]),
        (b" \n\ndata: x\n\ndata: y", [b"x", b"y"]),
        (b": ping\nevent: a\ndata: x\n", [b"x"]),
        (b"hello", []),
        (b" \n ", []),
        (b"", []),
    ],
)
def test_a_body_is_read_by_how_it_begins_however_it_is_cut(body: bytes, payloads: list[bytes]) -> None:
    for size in (1, 2, 3, len(body) or 1):
        reader, got = BodyReader(), []
        for at in range(0, len(body), size):
            got += reader.feed(body[at : at + size])
        assert got + reader.end() == payloads


def test_a_document_without_an_end_becomes_too_long() -> None:
    reader = BodyReader()
    assert not reader.is_too_long
    reader.feed(b"{" + b" " * MAX_LINE)
    assert reader.is_too_long
