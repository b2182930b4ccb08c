"""`notify` of firmware 2.5, played by a simulated device that gets the file over HTTP."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from fleet.adapters.speech.opus import Encoder
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.runtime.state import State
from tests.support.ogg import write_opus
from tests.support.scripted_server import ScriptedServer, page, tone
from tests.support.sim_stage import powered, talking

NEWEST = PROFILES["P9"]
SUBTITLES = [{"start_ms": 300, "text": "second"}, {"start_ms": 0, "text": "first"}]


def spoken(packets: int, **kind: Any) -> bytes:
    """Return a file with so many packets of a tone."""
    encoder = Encoder(24_000, 60)
    pcm, size = tone(0.06 * packets), encoder.frame_bytes
    return write_opus([encoder.encode(pcm[at : at + size]) for at in range(0, packets * size, size)], **kind)


def publish(server: ScriptedServer, content: bytes, **more: Any) -> str:
    """Offer a file and tell the device of it; return its address."""
    server.pages["/notice.ogg"] = page(content)
    url = server.ota_url.replace("/ota/", "/notice.ogg")
    server.send(type="notify", **{"audio_url": url, **more})
    return url


def broken(device: SimDevice) -> set[str]:
    return set(device.report.violation_counts)


async def step(device: SimDevice, name: str) -> dict[str, Any]:
    assert await device.until(240, lambda: bool(device.journal.find(name)))
    return device.journal.find(name)[0].detail


@pytest.mark.requirement("XZ-041")
async def test_an_idle_device_plays_a_notification_with_its_subtitles_and_says_nothing(server: ScriptedServer) -> None:
    async with powered(server, NEWEST) as device:
        said = len(server.messages)
        # Longer than the queue of 20 packets: the reader waits for room.
        publish(server, spoken(30), subtitles=SUBTITLES)
        await step(device, "notify")
        assert await device.until(240, lambda: device.state is State.NOTIFYING)
        assert (await step(device, "notified"))["fault"] == ""
        assert await device.until(240, lambda: device.state is State.IDLE)
        assert [one.detail["text"] for one in device.journal.find("subtitle")] == ["first", "second"]
        assert device.report.counters["downlink_played"] == 30
        assert device.report.counters["queue_deepest"] <= NEWEST.queue
        assert (broken(device), len(server.messages), device.journal.counters["gaps"]) == (set(), said, 0)


@pytest.mark.requirement("XZ-041")
async def test_the_file_is_read_as_it_is_played_and_the_connection_closed_with_its_last_byte(
    server: ScriptedServer,
) -> None:
    packets, played_at_close = 60, list[int]()
    content = spoken(packets)
    async with powered(server, NEWEST) as device:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
            with suppress(OSError):
                await reader.read()
            played_at_close.append(device.report.counters["downlink_played"])
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1") as files:
            port = files.sockets[0].getsockname()[1]
            server.send(type="notify", audio_url=f"http://127.0.0.1:{port}/n.ogg")
            assert (await step(device, "notified"))["fault"] == ""
            assert await device.until(240, lambda: bool(played_at_close))
    # When it closes, no more is left than its queue holds, and what sounds.
    assert played_at_close[0] >= packets - NEWEST.queue - 1


@pytest.mark.requirement("XZ-042")
async def test_a_press_ends_a_notification_and_begins_a_conversation(server: ScriptedServer) -> None:
    async with powered(server, NEWEST) as device:
        publish(server, spoken(60))
        assert await device.until(240, lambda: device.state is State.NOTIFYING)
        await device.press(seconds=0.0)
        await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen", state="start")
        assert not device.journal.find("notified")


@pytest.mark.requirement("XZ-042")
async def test_a_device_in_conversation_ignores_it(server: ScriptedServer) -> None:
    async with talking(server, NEWEST) as device:
        publish(server, spoken(3))
        assert (await step(device, "notify ignored"))["state"] == "listening"
        assert device.state is State.LISTENING
        assert broken(device) == set()


@pytest.mark.requirement("XZ-042")
async def test_a_second_one_is_ignored_while_the_first_plays(server: ScriptedServer) -> None:
    async with powered(server, NEWEST) as device:
        # Its queue holds a second of that, all that a device plays while it is held up.
        publish(server, spoken(200))
        await step(device, "notify")
        publish(server, spoken(20))
        assert (await step(device, "notify ignored"))["state"] == "notifying"


@pytest.mark.requirement("XZ-041")
@pytest.mark.parametrize(
    ("content", "message", "rule"),
    [
        (spoken(3, channels=2), {}, "notify-audio"),
        (b"no ogg at all", {}, "notify-audio"),
        (spoken(3), {"audio_url": None}, "notify-form"),
        (spoken(3), {"audio_url": "ftp://server/file"}, "notify-form"),
        (spoken(3), {"subtitles": {"start_ms": 0}}, "notify-form"),
        (spoken(3), {"subtitles": [{"start_ms": -1, "text": "x"}]}, "notify-form"),
    ],
)
async def test_a_notification_that_firmware_cannot_use_breaks_a_rule(
    server: ScriptedServer, content: bytes, message: dict[str, Any], rule: str
) -> None:
    async with powered(server, NEWEST) as device:
        publish(server, content, **message)
        assert await device.until(240, lambda: bool(broken(device)))
        assert rule in broken(device)
        assert await device.until(240, lambda: device.state is State.IDLE)


@pytest.mark.requirement("XZ-043")
async def test_older_firmware_ignores_it_and_the_server_is_told(server: ScriptedServer) -> None:
    async with powered(server, PROFILES["P1"]) as device:
        publish(server, spoken(3))
        assert await device.until(240, lambda: bool(broken(device)))
        assert broken(device) == {"notify-unknown"}
        assert device.state is State.IDLE
