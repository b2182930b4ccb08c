"""The UDP end of a voice client at a real edge: whoever says nothing hears the answer too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fleet.roles.gateway.voice.audio_channel import AudioChannel
from fleet.wire.toc import empty_packet
from fleet.wire.voice_websocket import Welcome
from tests.support.edge_stage import KEY, Stage, on_stage, opened, opus_like
from tests.support.virtual_time import elapse

SSRC = 0x11223344
SPOKEN = [b"\x58" + f"It is quiet.:{number:06}".encode() for number in range(3)]


class Client:
    """A voice client whose session is open on an edge."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.frames: list[bytes] = []

    async def connect(self, frame_ms: int) -> AudioChannel:
        nonce = bytes(4) + SSRC.to_bytes(4, "big") + bytes(8)
        welcome = Welcome("s1", "127.0.0.1", self.stage.edge.port, KEY, nonce, 24_000, 60, {})
        return await AudioChannel.open(welcome, "opus", frame_ms, self.frames.append)

    @property
    def heard(self) -> list[bytes]:
        """The answer, without the silence around it."""
        return [frame for frame in self.frames if b":" in frame]


@asynccontextmanager
async def client(rate: int = 16_000, frame_ms: int = 60) -> AsyncIterator[tuple[Client, AudioChannel]]:
    """Open a session with a kind of uplink, and its client."""
    async with on_stage() as stage:
        await stage.send("session_opened", **opened(SSRC) | {"uplink_rate": rate, "uplink_frame_ms": frame_ms})
        one = Client(stage)
        channel = await one.connect(frame_ms)
        try:
            yield one, channel
        finally:
            channel.close()


@pytest.mark.parametrize(("rate", "frame_ms"), [(16_000, 60), (16_000, 20), (24_000, 60), (48_000, 20), (24_000, 120)])
async def test_a_client_without_a_microphone_hears_the_answer_to_what_it_types(rate: int, frame_ms: int) -> None:
    async with client(rate, frame_ms) as (one, _):
        await one.stage.listen("realtime")
        await one.stage.send("wake_word_heard", text="What do you hear now?")
        await one.stage.speak((await one.stage.heard()).turn, "It is quiet.")
        await one.stage.until(lambda: len(one.heard) >= len(SPOKEN))
        assert one.heard == SPOKEN


@pytest.mark.parametrize(("spoken", "before"), [(1, 0.0), (3, 0.0), (7, 0.0), (1, 0.56), (1, 3.0)])
async def test_a_client_that_said_next_to_nothing_hears_the_answer_to_what_it_types(spoken: int, before: float) -> None:
    async with client() as (one, channel):
        await elapse(before)
        for _ in range(spoken):
            channel.send(opus_like(0, 0.0))
        await elapse(2)
        await one.stage.listen("realtime")
        await one.stage.send("wake_word_heard", text="What do you hear now?")
        await one.stage.speak((await one.stage.heard()).turn, "It is quiet.")
        await one.stage.until(lambda: len(one.heard) >= len(SPOKEN))
        assert one.heard == SPOKEN


@pytest.mark.parametrize("frame_ms", [20, 60, 120])
async def test_what_is_sent_in_place_of_a_microphone_does_not_press_a_button(frame_ms: int) -> None:
    async with client(frame_ms=frame_ms) as (one, _):
        await elapse(5)
        assert one.stage.edge.counters["received"] * frame_ms >= 960
        [session] = one.stage.edge._registry
        assert session.parts.turn_taking.mode is None


async def test_a_client_that_speaks_is_heard_with_what_it_says_alone() -> None:
    async with client() as (one, channel):
        packets = [opus_like(marker) for marker in range(1, 7)] + [opus_like(0, 0.0)] * 6
        await one.stage.listen("realtime")
        for packet in packets:
            assert channel.send(packet)
        await one.stage.heard()
        await elapse(3)
        assert one.stage.audio_input.seen == packets
        assert empty_packet(60) not in one.stage.audio_input.seen
