"""The gateway's port: connections that are held for nothing, floods, and messages that are bombs."""

import asyncio
import socket
import zlib
from contextlib import AsyncExitStack, ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Opcode

from fleet.adapters.redis.sessions.gateway_sessions import BegunSessions
from fleet.core.rates import Rate
from fleet.roles.gateway.port import entrance
from fleet.roles.gateway.port.connection_limits import ClientLimits
from tests.support.attacked_api import closed
from tests.support.attacked_gateway import ELSEWHERE, LIMIT, AttackedGateway, attacked_gateway, frame, head
from tests.support.descriptors import Descriptors
from tests.support.gateway_client import gateway_client
from tests.support.gateway_process import gateway_process
from tests.support.gateway_stage import patient_limits
from tests.support.own_certificate import write_certificate
from tests.support.ports import LOOPBACK, free_port
from tests.support.scraped import scrape

MANY = 200
_AWAY = "fleet_gateway_turned_away"
PING = frame(Opcode.PING, bytes(125))
ASK = frame(Opcode.TEXT, b'{"type":"ping"}')
BEGINNINGS = {
    "silence": b"",
    "one byte": b"G",
    "half a head": head()[:-2],
    "junk without an end": b"\x16\x03\x01" * 100,
}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
async def test_who_opens_no_websocket_is_put_out(redis_url: str, beginning: bytes) -> None:
    async with attacked_gateway(redis_url, patient_limits(head=1.0, passing=MANY), cloud_max_connections=2) as site:
        strangers = [await site.connect() for _ in range(MANY - 1)]
        for _, writer in strangers:
            writer.write(beginning)
        await site.serves()
        for reader, writer in strangers:
            assert await closed(reader, writer) == b""
        await site.counted("no request", MANY - 1)


async def test_a_head_that_trickles_is_put_out(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(head=0.5)) as site:
        reader, writer = await site.connect()
        raw = head()[:-2] + b"X-More: 1\r\n" * 100_000
        async with asyncio.timeout(LIMIT):
            for at in range(len(raw)):
                if site.counts["no request"]:
                    break
                writer.write(raw[at : at + 1])
                await asyncio.sleep(0.01)
        assert await closed(reader, writer) == b""


async def test_a_head_without_an_end_is_not_kept(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(head_bytes=4096)) as site:
        reader, writer = await site.connect()
        writer.write(head()[:-2] + b"X-More: %s\r\n" % bytes([120] * 1000) * 100)
        assert await closed(reader, writer) == b""
        assert site.counts["head too large"] == 1


async def test_a_head_that_lies_is_refused(redis_url: str) -> None:
    lies = {
        "no request": b"\x00\x01\x02\r\n\r\n",
        "too many headers": head()[:-2] + b"X: 1\r\n" * 1000 + b"\r\n",
        "a long line": b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
        "no key": head().replace(b"Sec-WebSocket-Key", b"X-Key"),
        "a body": head(Content_Length="5") + b"abcde",
        "chunks": head(Transfer_Encoding="chunked"),
        "another version": head(Sec_WebSocket_Version="8"),
    }
    async with attacked_gateway(redis_url, patient_limits(goodbye=0.3)) as site:
        for lie in lies.values():
            reader, writer = await site.connect()
            writer.write(lie)
            assert b" 101 " not in await closed(reader, writer)
        await site.counted("malformed request", len(lies))
        _, writer = await site.connect()
        writer.close()  # who only looks whether somebody is there is not counted


async def test_sockets_that_never_upgrade_take_no_clients_place(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(passing=20), cloud_max_connections=2) as site:
        strangers = [await site.connect() for _ in range(100)]
        await site.counted("crowded out", 80)
        async with asyncio.timeout(LIMIT), site.stage.client() as one, site.stage.client() as two:
            assert (await one.say("hi"))["content"] == (await two.say("hi"))["content"] == "A."
        assert site.stage.gateway.connection_limits.passing <= 20
        for _, writer in strangers:
            writer.close()


async def test_a_client_that_says_goodbye_and_stays_is_put_out(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(goodbye=0.3), cloud_max_connections=1) as site:
        reader, writer = await site.open()
        writer.write(frame(Opcode.CLOSE))
        await site.serves()
        await site.counted("not closed")
        await closed(reader, writer)


BEGUN = {
    "half a frame": ASK[:-1],
    "half a head of a frame": ASK[:1],
    "a length without bytes": frame(Opcode.TEXT, bytes(70_000))[:14],
    "half a ping": PING[:50],
    "a message in fragments": frame(Opcode.TEXT, b"{", final=False),
    "a message before it": ASK + ASK[:5],
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
async def test_what_is_begun_must_be_finished(redis_url: str, begun: bytes) -> None:
    async with attacked_gateway(redis_url, patient_limits(message=0.5)) as site:
        reader, writer = await site.open()
        writer.write(begun)
        await site.counted("message too slow")
        await closed(reader, writer)


async def test_a_message_in_fragments_must_end_though_pings_come_between(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(message=0.5)) as site:
        reader, writer = await site.open()
        writer.write(frame(Opcode.TEXT, b"[", final=False))
        async with asyncio.timeout(LIMIT):
            while not site.counts["message too slow"]:
                writer.write(frame(Opcode.CONT, b"1,", final=False) + frame(Opcode.PING))
                await asyncio.sleep(0.05)
        await closed(reader, writer)


async def test_a_client_that_finished_its_message_may_be_silent(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(message=1.0), cloud_ping_interval=0.3) as site:
        async with asyncio.timeout(LIMIT):
            # On a busy machine even these messages may take too long; then it is another client's turn.
            while True:
                reader, writer = await site.open()
                for message in (PING, ASK, PING):
                    await finish(site, writer, message)
                if not reader.at_eof() and site.clients:
                    break
                writer.close()
            before = site.counts["message too slow"]
            for _ in range(5):
                await reader.readuntil(b"\x89\x04")  # a ping of the gateway
                writer.write(frame(Opcode.PONG, await reader.readexactly(4)))
        assert site.counts["message too slow"] == before
        writer.close()


async def finish(site: AttackedGateway, writer: asyncio.StreamWriter, message: bytes) -> None:
    """Send a message in two pieces, unless the gateway ends the only client before."""
    writer.write(message[:4])
    await site.until(lambda: not site.clients or not site.clients[0]._edges.between)
    writer.write(message[4:])
    await site.until(lambda: not site.clients or site.clients[0]._edges.between)


async def test_fragments_without_bytes_do_not_go_on_for_ever(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(goodbye=0.3)) as site:
        reader, writer = await site.open()
        writer.write(frame(Opcode.TEXT, b"[", final=False) + frame(Opcode.CONT, final=False) * 20_000)
        await closed(reader, writer)
        await site.until(lambda: not site.clients)


async def test_who_pings_and_never_reads_is_put_out_and_fills_nothing(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(unread=0.5, controls=Rate(100_000, 1_000_000))) as site:
        _, writer = await site.open()
        writer.transport.pause_reading()
        most = 0
        with suppress(ConnectionError):
            async with asyncio.timeout(LIMIT):
                while not site.counts["not read"]:
                    writer.write(PING * 1000)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.05):
                            await writer.drain()
                    kept = (one.transport.get_write_buffer_size() + len(one._held) for one in site.clients)
                    most = max([most, *kept])
        await site.counted("not read")
        assert 0 < most < 400 * 1024
        writer.transport.abort()


async def test_pings_without_end_are_put_out(redis_url: str) -> None:
    async with attacked_gateway(redis_url, patient_limits(controls=Rate(0.001, 50))) as site:
        reader, writer = await site.open()
        writer.write(frame(Opcode.PING) * 40_000)
        await site.counted("too many pings")
        await closed(reader, writer)


async def test_frames_that_come_at_once_are_not_all_kept(redis_url: str) -> None:
    async with attacked_gateway(redis_url, rate_gateway="0.001/1") as site:
        reader, writer = await site.open()
        writer.write(frame(Opcode.TEXT) * 40_000)
        most = 0
        async with asyncio.timeout(LIMIT):
            while not site.counts["too many messages"]:
                await asyncio.sleep(0)
                most = max([most, *(len(one.recv_messages.frames) for one in site.clients)])
        assert 0 < most < 1000
        writer.transport.abort()
        await reader.read()


async def test_too_many_messages_get_an_error_and_are_read_later(redis_url: str) -> None:
    async with attacked_gateway(redis_url, rate_gateway="0.001/5") as site, site.stage.client() as client:
        for _ in range(6):
            await client.send("ping")
        got = [await client.next() for _ in range(6)]
        assert [frame["type"] for frame in got] == ["pong"] * 5 + ["error"]
        assert got[-1]["code"] == "INTERNAL_ERROR"
        await site.serves()
        await site.counted("too many messages")


async def test_a_compressed_bomb_is_not_unpacked(redis_url: str) -> None:
    async with attacked_gateway(redis_url) as site:
        reader, writer = await site.connect()
        writer.write(head(Sec_WebSocket_Extensions="permessage-deflate"))
        async with asyncio.timeout(LIMIT):
            answer = await reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in answer
        assert b"permessage-deflate" not in answer
        bomb = bytearray(frame(Opcode.BINARY, zlib.compress(bytes(10_000_000), 9)[2:-4]))
        bomb[0] |= 0x40  # it says that it is compressed
        writer.write(bomb)
        assert b"\x03\xea" in await closed(reader, writer), "1002"
        await site.counted("protocol")


async def test_a_message_beyond_the_limit_is_not_kept(redis_url: str) -> None:
    async with attacked_gateway(redis_url) as site:
        for raw in (
            frame(Opcode.TEXT, bytes(2_000_000))[:14],
            frame(Opcode.TEXT, bytes(600_000), final=False) + frame(Opcode.CONT, bytes(600_000)),
        ):
            reader, writer = await site.open()
            writer.write(raw)
            assert b"\x03\xf1" in await closed(reader, writer), "1009"
        await site.counted("too large", 2)


async def test_one_address_takes_not_all_places(redis_url: str) -> None:
    async with (
        attacked_gateway(redis_url, patient_limits(goodbye=0.3), gateway_each=3) as site,
        AsyncExitStack() as stack,
    ):
        for _ in range(3):
            await stack.enter_async_context(site.stage.client())
        for _ in range(5):
            reader, writer = await site.connect()
            writer.write(head())
            assert b"\x03\xf5" in await closed(reader, writer), "1013"
        await site.serves()
        await site.counted("too many connections of an address", 5)


async def test_by_default_one_address_takes_a_quarter_of_the_places_and_a_proxy_all(redis_url: str) -> None:
    stranger = ("127.0.0.3", 0)
    async with (
        attacked_gateway(redis_url, patient_limits(goodbye=0.3), cloud_max_connections=40) as site,
        AsyncExitStack() as stack,
    ):
        for _ in range(10):
            await stack.enter_async_context(site.stage.client(local_addr=stranger))
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", site.stage.gateway.port, local_addr=stranger)
            writer.write(head())
            assert b"\x03\xf5" in await closed(reader, writer), "1013"
        await site.serves()
        await site.counted("too many connections of an address", 5)
        for _ in range(20):
            await stack.enter_async_context(site.stage.client())


async def test_a_forwarded_address_is_believed_of_nobody_but_a_proxy(redis_url: str) -> None:
    for proxies, taken in (("127.0.0.1", 5), ("192.0.2.1", 2)):
        async with (
            attacked_gateway(redis_url, gateway_each=2, trusted_proxies=proxies) as site,
            AsyncExitStack() as stack,
        ):
            for number in range(5):
                forwarded = {"X-Forwarded-For": f"192.0.2.99, 198.51.100.{number}"}
                with suppress(ConnectionClosed):
                    await stack.enter_async_context(site.stage.client(additional_headers=forwarded))
            assert len(site.clients) == taken
            assert site.counts["too many connections of an address"] == 5 - taken


async def test_an_ipv6_network_counts_as_one_address(redis_url: str) -> None:
    async with attacked_gateway(redis_url, gateway_each=2) as site, AsyncExitStack() as stack:
        for number in range(5):
            forwarded = {"X-Forwarded-For": f"2001:db8:0:7::{number:x}"}
            with suppress(ConnectionClosed):
                await stack.enter_async_context(site.stage.client(additional_headers=forwarded))
        assert len(site.clients) == 2


async def test_guessing_tokens_is_slowed_down_for_the_address_that_guesses(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "WRONG_TOKENS", Rate(0.001, entrance.WRONG_TOKENS.burst))
    tokens = {"gateway_tokens": True, "operator_tokens_file": tmp_path / "tokens"}
    async with attacked_gateway(redis_url, **tokens) as site:
        got = []
        for number in range(30):
            reader, writer = await site.connect()
            writer.write(head(Authorization=f"Bearer flt_{number}"))
            got.append((await closed(reader, writer))[9:12])
        assert got == [b"401"] * 20 + [b"429"] * 10
        assert (site.counts["token"], site.counts["guesses"]) == (20, 10)
        async with site.stage.client(additional_headers=site.headers) as client:
            assert (await client.say("hi"))["content"] == "A."


async def test_silence_before_tls_keeps_nobody_out(redis_url: str, tmp_path: Path) -> None:
    shown = write_certificate(tmp_path, "127.0.0.1", datetime.now(UTC) + timedelta(days=60))
    async with attacked_gateway(redis_url, patient_limits(tls=0.5), cloud_max_connections=2, **shown) as site:
        port = site.stage.gateway.ports.tls_number
        strangers = [await site.connect(port) for _ in range(MANY)]
        for _, writer in strangers[::2]:
            writer.write(b"\x16\x03\x01\x02\x00\x01")
        await site.serves()
        await site.counted("tls", MANY)
        for reader, writer in strangers:
            await closed(reader, writer)


def test_a_gateway_of_its_own_withstands_strangers_and_counts_them(tmp_path: Path, redis_url: str) -> None:
    metrics = free_port()
    named = {"LLM_BASE_URL": f"http://{LOOPBACK}:9/v1", "FLEET_REDIS_URL": redis_url, "CLOUD_MAX_CONNECTIONS": "2"}
    told = {"FLEET_METRICS_HOST": LOOPBACK, "FLEET_METRICS_PORT": str(metrics)}
    with gateway_process(tmp_path, **named, **told) as process, ExitStack() as stack:
        here = Descriptors(process.pid)
        for beginning in (b"", head()[:-2]) * 150:
            stranger = stack.enter_context(socket.create_connection((LOOPBACK, process.port), LIMIT))
            stranger.sendall(beginning)
        asyncio.run(two_clients(process.url))
        found = scrape(metrics)
        # On a busy machine some of them have said nothing for too long before others come.
        turned_away = [found.value(f"{_AWAY}_total", reason=reason) for reason in ("crowded_out", "no_request")]
        assert sum(turned_away) >= 300 - ClientLimits().passing
        stack.close()
        asyncio.run(here.no_more(spare=8))


async def two_clients(url: str) -> None:
    """Fail unless both places of a gateway are free."""
    async with asyncio.timeout(LIMIT), gateway_client(url) as one, gateway_client(url) as two:
        assert one.session != two.session


async def test_a_client_that_begins_sessions_without_end_fills_nothing(redis_url: str) -> None:
    async with attacked_gateway(redis_url) as site:
        sessions = site.stage.sessions
        sessions.begun = BegunSessions(3600, most=20)
        async with site.stage.client(local_addr=ELSEWHERE) as normal, site.stage.client() as client:
            assert (await normal.say("hi"))["content"] == "A."
            async with asyncio.timeout(LIMIT):
                for _ in range(100):
                    await client.send("start_session")
                    session = (await client.next())["data"]["session_id"]
            assert len(sessions.begun) == 20
            assert await sessions.read(session, datetime.now(UTC))
            assert await sessions.read(client.session, datetime.now(UTC)) is None
            assert (await client.say("hi"))["content"] == "A."
            assert await sessions.read(normal.session, datetime.now(UTC))
