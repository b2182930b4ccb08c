"""Strangers who write the log full, through real requests to an api of its own."""

import asyncio
from pathlib import Path

import httpx2

from tests.support.ports import LOOPBACK, free_port
from tests.support.role_site import role_site
from tests.support.scraped import ready, scrape
from tests.support.until import until

REQUESTS = 600
DEVICES = 10
BODY = b'{"application":{"name":"xiaozhi","version":"2.4.2"},"board":{"type":"b"}}'


def headers(number: int, kind: int) -> dict[str, str]:
    mac = f"0a:00:00:{kind:02x}:{number >> 8:02x}:{number & 255:02x}"
    return {"Device-Id": mac, "Client-Id": f"{number}", "Content-Type": "application/json"}


async def test_a_flood_of_bootstraps_gives_few_lines_and_their_number(tmp_path: Path) -> None:
    with role_site(tmp_path) as site:
        port = free_port()
        api = site.start(
            "api",
            FLEET_HTTP_HOST=LOOPBACK,
            FLEET_HTTP_PORT=str(site.http_port),
            FLEET_LOG_LEVEL="info",
            FLEET_LOG_RATE="0.001/200",  # a busy machine needs minutes for all requests
            FLEET_ACTIVATION="open",
            FLEET_METRICS_PORT=str(port),
            FLEET_METRICS_HOST=LOOPBACK,
        )
        await asyncio.to_thread(until, lambda: ready(port))
        async with httpx2.AsyncClient(trust_env=False, timeout=240) as client:
            for number in range(DEVICES):
                assert (await client.post(site.ota, headers=headers(number, 1), content=BODY)).status_code == 200
            await asyncio.to_thread(until, lambda: api.count("bootstrap") == DEVICES)
            for number in range(REQUESTS):
                await client.post(site.ota, headers=headers(number, 2), content=BODY)
        left_out = (await asyncio.to_thread(scrape, port)).value("fleet_log_lines_left_out_total")
        assert left_out > REQUESTS / 2
        assert api.count("bootstrap") <= REQUESTS + DEVICES - left_out
