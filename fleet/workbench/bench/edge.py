"""The process with the real edge: `python -m fleet.workbench.bench.edge prepared|real`; commands on standard input."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any, cast

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.speech.turn_silence import SilenceTurnDetector
from fleet.ground import runtime
from fleet.ground.settings import Settings
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.edge.app import Edge
from fleet.roles.edge.settings import EdgeSettings
from fleet.wire.edge_messages import (
    EdgeCommand,
    EdgeEvent,
    OpenSessionCommand,
    SpeakSentenceCommand,
    StartAnswerCommand,
    StartListeningCommand,
)
from fleet.workbench.bench import codecs, control, lateness, streams
from fleet.workbench.bench.sounds import DOWNLINK_RATE, UPLINK_RATE

SPREAD_SECONDS = 2.0
"""Time over which answers begin, about a sentence: devices do not speak in step."""
_MOST_WAITING = 4096
_TEXT = "This sentence is longer than those that a voice keeps because they come again and again."


class Bench:
    """An edge, its inbox, and what it is asked.

    Args:
        codec: `real` or `prepared`.
    """

    def __init__(self, codec: str) -> None:
        audio_input, voice = codecs.real() if codec == "real" else codecs.prepared()
        self._inbox: asyncio.Queue[EdgeCommand] = asyncio.Queue(_MOST_WAITING)
        self.edge = Edge(
            settings=slice_of(Settings(udp_host=streams.HOST, udp_port=0), EdgeSettings),
            edge_id="bench",
            audio_input=audio_input,
            asr=codecs.NoAsr(),
            turn_detector=SilenceTurnDetector(),
            voice=voice,
            publisher=cast(Publisher, self),
            inboxes=cast(Inboxes, self),
        )
        self.edge.bind()

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what the benchmark says and return the answer."""
        match command["do"]:
            case "open":
                await self._open(command["streams"])
                return {"port": self.edge.port}
            case "speak":
                await self._speak(command["streams"], command["sentences"])
            case "watch":
                with lateness.watched() as late_ms:
                    await asyncio.sleep(command["seconds"])
                return {"late_ms": late_ms}
        return {"cpu": time.process_time(), "at": time.monotonic(), "counters": dict(self.edge.counters)}

    async def _open(self, count: int) -> None:
        for number in range(count):
            device, session = streams.device(number), streams.session(number)
            opened = OpenSessionCommand(
                device=device,
                session=session,
                dialect="xiaozhi",
                shard=0,
                ssrc=streams.ssrc(number),
                key=streams.key(number).hex(),
                uplink_rate=UPLINK_RATE,
                uplink_frame_ms=streams.FRAME_MS,
                downlink_rate=DOWNLINK_RATE,
                downlink_frame_ms=streams.FRAME_MS,
            )
            await self._inbox.put(opened)
            # The only mode in which a device is heard while it speaks.
            await self._inbox.put(StartListeningCommand(device=device, session=session, mode="realtime"))
        await self._inbox.join()

    async def _speak(self, count: int, sentences: int) -> None:
        for number in range(count):
            who = {"device": streams.device(number), "session": streams.session(number), "turn": f"turn {number}"}
            await self._inbox.put(StartAnswerCommand(**who))
            for index in range(sentences):
                await self._inbox.put(SpeakSentenceCommand(**who, index=index, text=_TEXT, language="en"))
            await asyncio.sleep(SPREAD_SECONDS / count)

    def publish(self, topic: str, payload: bytes) -> bool:
        """Drop it."""
        return True

    async def read_edge(self, edge: str) -> AsyncIterator[EdgeCommand]:
        while True:
            yield await self._inbox.get()
            self._inbox.task_done()

    async def to_shard(self, shard: int, event: EdgeEvent) -> None:
        """Drop it."""


async def _serve(codec: str) -> None:
    bench = Bench(codec)
    async with running("edge", bench.edge.run):
        await control.obey(lambda: bench.do)


def main() -> int:
    return runtime.run(lambda: _serve(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
