"""Connections that are held for nothing, and bodies that are bombs."""

import asyncio
import gzip
import resource
from pathlib import Path

import pytest

from fleet.adapters.net.http.connection import Bounds
from fleet.adapters.redis.client.store import Store
from fleet.wire.firmware_offer import offer_name
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import CLIENT, headers
from tests.support.attacked_api import ACTIVATE, LIMIT, OTA, AttackedApi, attacked_api, closed
from tests.support.offered_firmware import image_of, offer_firmware, store_file

MANY = 200
VICTIM = "0a:00:00:00:00:02"
HEAD = f"POST {OTA} HTTP/1.1\r\nHost: x\r\nDevice-Id: {VICTIM}\r\n"
BEGINNINGS = {
    "silence": b"",
    "one byte": b"P",
    "half a head": HEAD.encode(),
    "junk without an end": b"\x16\x03\x01" * 100,
}


async def until_ended(site: AttackedApi, reason: str, times: int) -> None:
    async with asyncio.timeout(LIMIT):
        while site.ended[reason] < times:
            await asyncio.sleep(0.01)


async def alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Have a request answered."""
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(LIMIT):
        assert b"200" in await reader.readline()
        while (await reader.readline()).strip():
            pass
        assert b"alive" in await reader.readexactly(len(b'{"status":"alive"}'))


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
async def test_who_sends_no_request_is_put_out(store: Store, keys: CredentialKeys, beginning: bytes) -> None:
    async with attacked_api(store, keys, bounds=Bounds(head=0.5)) as site:
        held = [await site.connect() for _ in range(MANY)]
        for _, writer in held:
            writer.write(beginning)
        await site.serves()
        for reader, writer in held:
            said = await closed(reader, writer)
            assert said == b"" or said.startswith(b"HTTP/1.1 400 ")


async def test_a_head_that_trickles_is_put_out(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, bounds=Bounds(head=0.5)) as site:
        reader, writer = await site.connect()
        writer.write(HEAD.encode())
        async with asyncio.timeout(LIMIT):
            while not site.ended["no request"]:
                writer.write(b"X-More: 1\r\n")
                await asyncio.sleep(0.05)
        assert await closed(reader, writer) == b""


async def test_a_body_that_goes_on_after_its_answer_is_put_out(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, bounds=Bounds(head=LIMIT)) as site:
        reader, writer = await site.connect()
        await alive(reader, writer)
        writer.write(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        site.server.bounds.head = 0.5  # from the end of its answer on
        async with asyncio.timeout(LIMIT):
            assert b"404" in await reader.readline()
            while not site.ended["no request"]:
                writer.write(b"4\r\njunk\r\n")
                await asyncio.sleep(0.05)
        await closed(reader, writer)


async def test_a_second_request_may_take_no_longer_than_the_first(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, bounds=Bounds(head=LIMIT)) as site:
        reader, writer = await site.connect()
        async with asyncio.timeout(LIMIT):
            for seconds in (LIMIT, 0.5):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                site.server.bounds.head = seconds  # from the end of its answer on
                assert b"200" in await reader.readline()
                while (await reader.readline()).strip():
                    pass
                assert b"alive" in await reader.readexactly(len(b'{"status":"alive"}'))
            writer.write(b"GET /healthz HT")
            await until_ended(site, "no request", 1)
        await closed(reader, writer)


async def test_who_does_not_read_its_answer_is_put_out(store: Store, keys: CredentialKeys, tmp_path: Path) -> None:
    file = store_file(tmp_path, image_of("9.9.9", 16 * 1024 * 1024))
    name = offer_name(VICTIM, await offer_firmware(store, VICTIM, "9.9.9", file))
    async with attacked_api(store, keys, Bounds(head=LIMIT, unread=0.5), firmware_dir=tmp_path) as site:
        reader, writer = await site.connect()
        writer.transport.pause_reading()
        writer.write(f"GET /xiaozhi/firmware/{name}.bin HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await until_ended(site, "answer not read", 1)
        writer.transport.resume_reading()
        await closed(reader, writer)


async def test_connections_of_one_address_are_bounded_and_leave_others_room(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, bounds=Bounds(head=LIMIT, each=20), trusted_proxies="127.0.0.9") as site:
        held = [await site.connect() for _ in range(50)]
        await until_ended(site, "too many connections", 30)
        await site.serves()
        for _, writer in held:
            writer.close()
    assert not site.server.bounds.here


@pytest.mark.parametrize("path", [OTA, ACTIVATE, "/vision/explain", "/healthz", "/nowhere"])
async def test_a_body_of_100_megabytes_is_not_kept(store: Store, keys: CredentialKeys, path: str) -> None:
    async with attacked_api(store, keys) as site:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _, writer = await site.connect()
        size = 100 * 1024 * 1024
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nDevice-Id: {VICTIM}\r\nContent-Length: {size}\r\n\r\n".encode()
        )
        try:
            async with asyncio.timeout(LIMIT):
                for _ in range(size // 65536):
                    writer.write(bytes(65536))
                    await writer.drain()
        except (ConnectionError, TimeoutError):
            pass  # it has had enough
        writer.close()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024


BOMBS = {
    "deep list": b"[" * 60_000,
    "deep object": b'{"application":' * 4000 + b"1" + b"}" * 4000,
    "deep in a known place": b'{"board":{"type":' + b"[" * 30_000 + b"]" * 30_000 + b"}}",
    "long number": b'{"board":{"type":' + b"9" * 60_000 + b"}}",
    "large exponent": b'{"board":{"type":1e999999999}}',
    "many keys": b"{" + b",".join(b'"%d":0' % number for number in range(6000)) + b"}",
    "one key many times": b"{" + b",".join([b'"board":{}'] * 5000) + b"}",
    "surrogates": b'{"board":{"type":"\\ud800\\udfff\\ud800"}}',
    "nulls": bytes(60_000),
    "gzip": gzip.compress(bytes(20_000_000)),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_a_bomb_in_a_body_does_nothing(store: Store, keys: CredentialKeys, bomb: bytes) -> None:
    async with attacked_api(store, keys) as site:
        packed = headers(Device_Id=VICTIM, Content_Encoding="gzip") | {"Content-Type": "application/json"}
        answer = await site.client.post(OTA, headers=packed, content=bomb)
        assert answer.status_code == 200
        assert answer.json()["mqtt"]["client_id"] == VICTIM
        assert len(answer.content) < 7 * 1024
        assert (await site.client.post(ACTIVATE, headers=packed, content=bomb)).status_code == 200


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: -1\r\n",
        f"X: {'y' * 1_000_000}\r\n",
        "X: y\r\n" * 200_000,
        "no colon\r\n",
        "X: a\0b\r\n",
    ],
    ids=["two lengths", "length and chunks", "negative", "long header", "many headers", "no header", "null"],
)
async def test_a_head_that_lies_is_refused(store: Store, keys: CredentialKeys, lines: str) -> None:
    async with attacked_api(store, keys, bounds=Bounds(head=1.0)) as site:
        reader, writer = await site.connect()
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: x\r\nClient-Id: {CLIENT}\r\n{lines}\r\nabcde".encode())
        said = await closed(reader, writer)
        assert b"200 OK" not in said or "chunked" in lines
        assert said.count(b"HTTP/1.1 200") <= 1
        assert site.ended["malformed request"] + site.ended["no request"] + said.count(b"HTTP/1.1 200") > 0
