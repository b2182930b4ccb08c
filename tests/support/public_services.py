"""A local HTTP server that answers as public services do: open-meteo, its place finder, one that knows addresses."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

BEIJING = {
    "id": 1816670,
    "name": "北京市",
    "latitude": 39.9075,
    "longitude": 116.39723,
    "country_code": "CN",
    "timezone": "Asia/Shanghai",
    "country": "中国",
    "admin1": "北京市",
}
PARIS = {
    "name": "Paris",
    "latitude": 48.85341,
    "longitude": 2.3488,
    "country_code": "FR",
    "timezone": "Europe/Paris",
    "country": "France",
    "admin1": "Île-de-France",
}
PARIS_TEXAS = {
    "name": "Paris",
    "latitude": 33.66094,
    "longitude": -95.55551,
    "country_code": "US",
    "timezone": "America/Chicago",
    "country": "United States",
    "admin1": "Texas",
}
_PLACES = {"北京": [BEIJING], "Paris": [PARIS, PARIS_TEXAS], "Beijing": [BEIJING]}
_CURRENT = {
    "time": "2025-07-01T20:00",
    "interval": 900,
    "temperature_2m": 22.4,
    "apparent_temperature": 21.0,
    "relative_humidity_2m": 45,
    "weather_code": 0,
    "wind_speed_10m": 8.6,
}
_DAILY = {
    "weather_code": [61],
    "temperature_2m_max": [30.1],
    "temperature_2m_min": [19.2],
    "temperature_2m_mean": [24.9],
    "relative_humidity_2m_mean": [70],
    "precipitation_probability_max": [80],
    "wind_speed_10m_max": [15.0],
}

Query = dict[str, str]


@dataclass
class PublicServices:
    """`mode` says how it answers from now on: `good`, or `hangs`, `drips`, `refuses`, `babbles`, `floods`."""

    url: str = ""
    mode: str = "good"
    asked: list[tuple[str, Query]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                parts = urlsplit(head.split(b" ")[1].decode())
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                self.asked.append((unquote(parts.path), query))
                await self._answer(writer, parts.path, query)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, path: str, query: Query) -> None:
        match self.mode:
            case "hangs":
                await asyncio.sleep(60)
            case "drips":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                for _ in range(600):
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.1)
            case "floods":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
                for _ in range(1_000):
                    writer.write(b'"flood",' * 10_000)
                    await writer.drain()
            case "refuses":
                _send(writer, 400, json.dumps({"error": True, "reason": "no"}).encode())
            case "babbles":
                _send(writer, 200, b"<html>")
            case _:
                _send(writer, 200, json.dumps(_find(path, query), ensure_ascii=False).encode())
        await writer.drain()


def _find(path: str, query: Query) -> Any:
    if path == "/v1/search":
        found = _PLACES.get(query["name"])
        return {"generationtime_ms": 0.5, **({"results": found} if found else {})}
    if path == "/v1/forecast":
        daily = {"time": [query["start_date"]], **_DAILY}
        return {"latitude": 39.9, "daily": daily, **({"current": _CURRENT} if "current" in query else {})}
    if path == "/where/93.184.216.34":
        return {
            "city": "Berlin",
            "region": "Berlin",
            "country_name": "Germany",
            "lat": 52.5,
            "lon": "13.4",
            "timezone": "Europe/Berlin",
        }
    return {"error": True, "reason": "Reserved IP Address"}


def _send(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


@asynccontextmanager
async def public_services() -> AsyncIterator[PublicServices]:
    services = PublicServices()
    server = await asyncio.start_server(services.serve, "127.0.0.1", 0)
    services.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield services
    finally:
        server.close()
