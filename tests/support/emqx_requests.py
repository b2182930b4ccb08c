"""EMQX's side of HTTP: logins as its HTTP client writes them, and the part of its REST API that fleet uses."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.net.mqtt.emqx import CLIENTS, KICKOUT
from fleet.ground.tasks import running
from fleet.roles.api.mqtt_login import PATH, MqttLogin
from fleet.wire.identity import CredentialKeys, Credentials

TOKEN = "a-token-of-the-broker"
LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def login_server(keys: CredentialKeys, host: str = LOOPBACK) -> AsyncIterator[tuple[MqttLogin, int]]:
    """Run the login route on the server of the api; the route and its port."""
    route = MqttLogin(keys, TOKEN, Counter())
    app = FastAPI()
    app.include_router(route.router)
    server = HttpServer(app, host, 0)
    async with running("api", server.run):
        yield route, server.port


def login_request(who: Credentials | dict[str, Any] | bytes, authorization: str | None = f"Bearer {TOKEN}") -> bytes:
    """Return the bytes of a request: EMQX names headers in lower case and keeps the connection open."""
    if isinstance(who, Credentials):
        who = {"clientid": who.client_id, "username": who.username, "password": who.password}
    body = who if isinstance(who, bytes) else json.dumps(who, separators=(",", ":"), ensure_ascii=False).encode()
    lines = [
        f"POST {PATH} HTTP/1.1",
        "content-type: application/json",
        *([f"authorization: {authorization}"] if authorization is not None else []),
        f"content-length: {len(body)}",
        "host: fleet-api:8000",
        "user-agent: gun/1.3.9",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    """One of EMQX's connections to the api; requests may be sent before earlier ones are answered."""

    def __init__(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self._reader, self._writer = streams

    def send(self, *requests: bytes) -> None:
        self._writer.write(b"".join(requests))

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        """Return status, headers in lower case as EMQX's client gives them, and the JSON of the next answer."""
        async with asyncio.timeout(240):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-1])}
            body = await self._reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, json.loads(body)

    async def ask(self, request: bytes) -> Any:
        """Return what EMQX makes of the answer to a request: `ignore` unless it is a 200 with JSON."""
        self.send(request)
        status, headers, body = await self.answer()
        if status != 200 or not headers["content-type"].startswith("application/json"):
            return {"result": "ignore"}
        return body


@asynccontextmanager
async def connection(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        yield Connection((reader, writer))
    finally:
        writer.close()
        await writer.wait_closed()


@dataclass
class RestApi:
    """What EMQX was told, and what it answers next; 204 when there is nothing else to answer."""

    port: int = 0
    answers: list[int] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    kicks: asyncio.Queue[list[str]] = field(default_factory=asyncio.Queue)
    clients: dict[str, str] = field(default_factory=dict)
    """User names by client id of who is connected."""

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def kicked(self) -> list[str]:
        async with asyncio.timeout(240):
            return await self.kicks.get()


@asynccontextmanager
async def rest_api(port: int = 0) -> AsyncIterator[RestApi]:
    """Run EMQX's `POST /clients/kickout/bulk`: an array of client ids, answered with 204 and no body; and its lists."""
    told = RestApi()
    app = FastAPI()

    @app.post(KICKOUT)
    async def kickout(request: Request) -> Response:
        assert request.headers["content-type"] == "application/json"
        told.logins.append(request.headers["authorization"])
        status = told.answers.pop(0) if told.answers else 204
        if status == 204:
            told.kicks.put_nowait(await request.json())
        return Response(status_code=status)

    @app.get(CLIENTS)
    async def listed(page: int, limit: int) -> dict[str, Any]:
        found = [_described(name, told) for name in sorted(told.clients)]
        return {"data": found[(page - 1) * limit : page * limit], "meta": {"page": page, "limit": limit}}

    @app.get(f"{CLIENTS}/{{name}}")
    async def one(name: str) -> Response:
        if name not in told.clients:
            return JSONResponse({"code": "CLIENTID_NOT_FOUND", "message": "Client ID not found"}, 404)
        return JSONResponse(_described(name, told))

    server = HttpServer(app, LOOPBACK, port)
    told.port = server.port
    async with running("EMQX's API", server.run):
        yield told


def _described(name: str, told: RestApi) -> dict[str, Any]:
    return {"clientid": name, "username": told.clients[name], "connected": True, "port": 50000}
