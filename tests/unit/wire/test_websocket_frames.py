"""Where frames and messages begin and end, against the library's own frames."""

import random

import pytest
from websockets.frames import Frame, Opcode

from fleet.wire.websocket_frames import FrameTracker

TEXT, MORE, PING, CLOSE = Opcode.TEXT, Opcode.CONT, Opcode.PING, Opcode.CLOSE


def written(opcode: Opcode, size: int, *, final: bool = True, mask: bool = True) -> bytes:
    return Frame(opcode, bytes(size), final).serialize(mask=mask)


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("size", [0, 1, 125, 126, 300, 65535, 65536, 70000])
def test_a_message_is_under_way_from_its_first_byte_to_its_last(size: int, mask: bool) -> None:
    raw = written(TEXT, size, mask=mask)
    for at in {0, 1, 2, 5, len(raw) // 2, len(raw) - 2}:
        edges = FrameTracker()
        edges.feed(raw[: at + 1])
        assert edges.between is (at + 1 >= len(raw))
        edges.feed(raw[at + 1 :])
        assert edges.between
        assert edges.messages == 1


def test_fragments_are_one_message_and_a_ping_between_them_is_none() -> None:
    edges = FrameTracker()
    for part in (written(TEXT, 3, final=False), written(PING, 4), written(MORE, 0, final=False), written(PING, 0)):
        edges.feed(part)
        assert not edges.between
        assert edges.messages == 0
    edges.feed(written(MORE, 0))
    assert edges.between
    assert edges.messages == 1
    edges.feed(written(PING, 5)[:-1])
    assert not edges.between
    edges.feed(b"\0")
    assert (edges.between, edges.messages) == (True, 1)


def test_pieces_make_no_difference() -> None:
    dice = random.Random(1)
    for _ in range(200):
        frames = [written(dice.choice((TEXT, PING, CLOSE)), dice.choice((0, 5, 125))) for _ in range(5)]
        frames += [written(TEXT, 200, final=False), written(MORE, 66000)]
        dice.shuffle(frames[:5])
        raw = b"".join(frames)
        edges, at = FrameTracker(), 0
        while at < len(raw):
            step = dice.choice((1, 2, 3, 7, 5000))
            edges.feed(raw[at : at + step])
            at += step
        whole = FrameTracker()
        whole.feed(raw)
        assert edges.between and whole.between
        assert edges.messages == whole.messages == sum(frame[0] & 0x0F == TEXT for frame in frames)
