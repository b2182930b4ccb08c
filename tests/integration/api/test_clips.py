"""Clips over real HTTP and a real Redis: who gets one, how often, and what the client's close tells."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import pytest

from fleet.adapters.redis.announcements.clips import Clip, Clips
from fleet.adapters.redis.announcements.deliveries import Deliveries, DeliveryRecord
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.clips import PATH, ClipDelivery, clip_path
from fleet.wire.identity import CredentialKeys
from fleet.workbench.sim.network.slow_reader import slow_get
from tests.support.api_server import api_client

AUDIO = bytes(range(256)) * 40
CLIP = "c" * 32


@dataclass
class Site:
    client: httpx2.AsyncClient
    deliveries: Deliveries
    owner: Owner
    keys: CredentialKeys

    async def offer(self, number: int = 1) -> ClipDelivery:
        delivery = ClipDelivery(0, f"{number:032x}")
        await self.deliveries.note(self.owner, delivery, "notify", CLIP)
        return delivery

    def url(self, delivery: ClipDelivery) -> str:
        return f"{self.client.base_url}{clip_path(self.keys, delivery)}".replace("//xiaozhi", "/xiaozhi")

    async def ended(self, delivery: ClipDelivery) -> DeliveryRecord:
        async with asyncio.timeout(240):
            while not (record := await self.deliveries.read(delivery)).end:
                await asyncio.sleep(0.02)
        return record


@pytest.fixture
async def site(store: Store, keys: CredentialKeys) -> AsyncIterator[Site]:
    owner = await Leases(store, "w", 600).take(0)
    assert owner is not None
    assert await Clips(store).put(CLIP, Clip(AUDIO, 4_000))
    async with api_client(store, keys) as client:
        yield Site(client, Deliveries(store), owner, keys)


async def test_a_device_gets_its_clip_once_with_its_length_and_the_close_is_noted_when_it_comes(site: Site) -> None:
    delivery = await site.offer()
    async with slow_get(site.url(delivery)) as body:
        content = b""
        while piece := await body.read():
            content += piece
        assert content == AUDIO
        record = await site.deliveries.read(delivery)
        assert (record.taken, record.end) == (True, None), "everything was read, but the client has not closed"
    assert (await site.ended(delivery)).end == "closed"
    assert (await site.client.get(site.url(delivery))).status_code == 404, "it is for one device, once"


async def test_the_head_is_one_that_every_firmware_reads(site: Site) -> None:
    url = site.url(await site.offer())
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert head.startswith("HTTP/1.1 200 ")
    assert f"Content-Length: {len(AUDIO)}\r\n" in head and "Content-Type: audio/ogg\r\n" in head
    assert "Transfer-Encoding" not in head and "Content-Encoding" not in head
    writer.close()


async def test_behind_a_proxy_the_close_tells_nothing(site: Site) -> None:
    delivery = await site.offer()
    answer = await site.client.get(site.url(delivery), headers={"X-Forwarded-For": "192.0.2.7"})
    assert (answer.status_code, answer.content) == (200, AUDIO)
    assert (await site.ended(delivery)).end == "unseen"


async def test_nobody_gets_a_clip_without_a_signed_address_that_is_still_open(site: Site, store: Store) -> None:
    delivery = await site.offer()
    good = site.url(delivery)
    for url in (good.replace("-0", "-1", 1), f"{PATH}/x.ogg", good[:-5] + ".ogg"):
        assert (await site.client.get(url)).status_code == 404, url
    assert (await site.client.head(good)).status_code == 405
    unknown = ClipDelivery(0, "f" * 32)
    assert (await site.client.get(site.url(unknown))).status_code == 404
    await site.deliveries.note(site.owner, delivery, "notify", "gone")
    assert (await site.client.get(good)).status_code == 404
    late = await site.offer(2)
    await store.client.hset(store.keys.delivery(0, late.id), "at", "1000")
    assert (await site.client.get(site.url(late))).status_code == 404


async def test_all_clips_together_have_a_bound_and_those_that_end_first_give_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.redis.announcements.clips.MOST_BYTES", 40_000)
    clips = Clips(store)
    # Of clips that end in the same millisecond, the first in the alphabet gives way.
    for name in "acb":
        assert await clips.put(name, Clip(AUDIO, 1_000))
    assert [bool((await clips.find(name)).ms) for name in "acb"] == [False, True, True]
    assert not await clips.put("d", Clip(AUDIO * 10, 1_000))
    assert (await clips.find("c")).ms == 1_000, "now b ends first"
    assert await clips.put("e", Clip(AUDIO, 1_000))
    assert [await clips.read(name) is not None for name in "acbe"] == [False, True, False, True]


async def test_one_maker_at_a_time_has_a_clip_made_and_a_failure_is_known_for_some_time(store: Store) -> None:
    clips = Clips(store)
    assert [await clips.claim("n") for _ in range(2)] == [True, False]
    await clips.fail("n", "no voice")
    assert (await clips.find("n")).failure == "no voice"
