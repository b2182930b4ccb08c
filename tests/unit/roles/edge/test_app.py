import logging
import socket
from collections import Counter
from typing import Any, cast

import pytest

from fleet.ground.errors import Unavailable
from fleet.ground.log import JsonFormatter
from fleet.roles.edge.session import EdgeSession
from fleet.roles.edge.transport.socket import IDLE_TICKS, AudioSocket, DatagramReceiver
from fleet.roles.edge.transport.stall_detector import StallDetector
from fleet.wire.edge_messages import EdgeCommand
from tests.support.edge_stage import Stage, on_stage, opus_like, settle


async def test_inbox_that_fails_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    read = Stage.read_edge

    async def fail_first(stage: Stage, edge: str) -> Any:
        nonlocal reads
        reads += 1
        if reads == 1:
            raise Unavailable("redis is away")
        async for event in read(stage, edge):
            yield event

    monkeypatch.setattr(Stage, "read_edge", fail_first)
    async with on_stage() as stage:
        await stage.open()
        assert stage.edge.load == 1
    assert reads == 2


async def test_failure_of_one_session_does_not_touch_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage() as stage:
        await stage.open()
        [session] = stage.edge._registry

        take = EdgeSession.take

        async def fail(self: EdgeSession, command: EdgeCommand, now: float) -> None:
            if self is session:
                raise TypeError("broken")
            await take(self, command, now)

        monkeypatch.setattr(EdgeSession, "take", fail)
        await stage.listen()
        device = await stage.open(ssrc=9, session="s2")
        await stage.send("listening_started", session="s2", mode="auto")
        device.say()
        await stage.heard()


async def test_timeline_of_a_turn_is_logged_with_its_names(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fleet")
    lines: list[str] = []
    writer = JsonFormatter(pii=False)

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(writer.format(record))

    collector = Collector()
    logging.getLogger("fleet").addHandler(collector)
    try:
        async with on_stage() as stage:
            device = await stage.open()
            await stage.listen()
            stage.asr.script.append("a secret")
            device.say()
            turn = (await stage.heard()).turn
            await stage.speak(turn, "A")
            await stage.until(lambda: "speech_done" in stage.kinds())
    finally:
        logging.getLogger("fleet").removeHandler(collector)
    timeline = (
        "utterance ended",
        "utterance recognised",
        "speech begins",
        "first audio ready",
        "first packet sent",
        "speech done",
    )
    told = [line for line in lines if any(f'"message":"{message}"' in line for message in timeline)]
    assert [message for line in told for message in timeline if f'"message":"{message}"' in line] == list(timeline)
    assert all('"session":"s1"' in line and '"device":"aa:bb:cc:dd:ee:01"' in line for line in told)
    assert all(f'"turn":"{turn}"' in line for line in told[2:])
    assert "since_end_of_speech" in told[4]
    assert "secret" not in "".join(lines)


async def test_fields_of_a_session_do_not_leak_into_the_tick(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage() as stage:
        first = await stage.open()
        first.be_silent(1)
        await stage.received(1)
        lines: list[str] = []
        writer = JsonFormatter(pii=False)
        monkeypatch.setattr(caplog.handler, "emit", lambda record: lines.append(writer.format(record)))
        caplog.set_level(logging.INFO, "fleet")
        handle = stage.edge._services.socket._handle
        assert handle
        handle._context.run(logging.getLogger("fleet.test").info, "tick")  # type: ignore[attr-defined]
        assert "session" not in lines[0]


async def test_taken_port_is_an_error_and_leaves_nothing_open() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        audio = AudioSocket(cast(DatagramReceiver, None), Counter(), StallDetector(0.0, lambda: None), native=False)
        with pytest.raises(OSError, match="in use"):
            audio.bind("127.0.0.1", taken.getsockname()[1])


async def test_socket_ticks_while_busy_and_watches_while_idle() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        audio = stage.edge._services.socket
        await stage.until(lambda: audio._handle is None)
        device.send(opus_like(1))
        await stage.received(1)
        assert audio._handle is not None
        await stage.until(lambda: audio._handle is None)
        assert audio._idle >= IDLE_TICKS
        device.send(opus_like(2))
        await stage.received(2)


async def test_packet_that_the_kernel_does_not_take_is_counted() -> None:
    async with on_stage() as stage:
        stage.edge._services.socket.send(b"x", ("127.0.0.1", 0))
        stage.edge._services.socket.send(b"x", ("255.255.255.255", 9))
        await settle()
        assert stage.edge.counters["send_failed"] == 2


async def test_notices_that_cannot_be_delivered_are_given_up() -> None:
    async with on_stage() as stage:
        await stage.open()
        stage.post_failure = Unavailable("redis is away")
        stage.pass_time(20)
        await stage.until(lambda: stage.edge.counters["outbox_failed"])
        stage.post_failure = None
        await stage.send("session_closed")
        assert stage.edge.load == 0


async def test_notices_beyond_the_limit_are_counted() -> None:
    async with on_stage(edge_sessions=500) as stage:
        await stage.open()
        [session] = stage.edge._registry
        for _ in range(1100):
            session.request_end()
        assert stage.edge.counters["outbox_full"] == 1100 - 1024
