"""A kill of control in the middle of changes loses nothing and does nothing twice."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.files.operator_tokens import OperatorTokens
from tests.support.ports import LOOPBACK, free_port
from tests.support.role_process import RoleProcess

SECONDS = 240.0
AT_ONCE = 16


class KilledControl:
    """A `fleet control` with SQLite that is killed and started again."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self._port = free_port()
        self._settings = {
            "FLEET_REDIS_URL": redis_url,
            "FLEET_KEYS": "k:a-key-for-tests-of-control",
            "FLEET_DATA_DIR": str(folder),
            "FLEET_CONTROL_PORT": str(self._port),
        }
        self._folder = folder
        scopes = frozenset({"tokens:write", "audit:read"})
        self._token = OperatorTokens(folder / "operator-tokens").add("test", scopes)
        self.process: RoleProcess | None = None
        self.kills = asyncio.Event()

    def client(self) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx2.AsyncClient(
            base_url=f"http://{LOOPBACK}:{self._port}", headers=headers, trust_env=False, timeout=240
        )

    async def start(self) -> None:
        self.kills.clear()
        self.process = RoleProcess("control", self._settings, self._folder / "control.log")
        async with self.client() as client, asyncio.timeout(SECONDS):
            while True:
                try:
                    await client.get("/healthz")
                except httpx2.HTTPError:
                    assert self.process.code is None, self.process.lines
                    await asyncio.sleep(0.05)
                else:
                    return

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.kills.set()

    def discard(self) -> None:
        if self.process is not None:
            self.process.discard()


@pytest.fixture
def killed(tmp_path: Path, redis_url: str) -> Iterator[KilledControl]:
    control = KilledControl(tmp_path, redis_url)
    yield control
    control.discard()


async def make(client: httpx2.AsyncClient, name: str, until: asyncio.Event | None = None) -> httpx2.Response:
    """Ask for a token; keep the end of the request back until something has happened."""
    body = json.dumps({"name": name, "scopes": ["tokens:write"]}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield body[:-1]
        if until is not None:
            await until.wait()
        yield body[-1:]

    headers = {"Idempotency-Key": name, "Content-Type": "application/json", "Content-Length": str(len(body))}
    return await client.post("/v1/tokens", content=pieces(), headers=headers)


async def test_nothing_is_lost_and_nothing_happens_twice(killed: KilledControl) -> None:
    answered: dict[str, int] = {}
    names = [f"n{number}" for number in range(2 * AT_ONCE)]
    for part in (names[:AT_ONCE], names[AT_ONCE:]):
        await killed.start()
        await _make_until_killed(killed, part, answered)
    assert 0 < len(answered) < len(names), "some were answered before the kills, some not"
    await killed.start()
    async with killed.client() as client:
        repeated = {name: await make(client, name) for name in names}
        assert {answer.status_code for answer in repeated.values()} == {201}
        assert {name: repeated[name].json()["id"] for name in answered} == answered
        tokens = await _all(client, "/v1/tokens")
        assert Counter(row["name"] for row in tokens) == Counter(names)
        log = await _all(client, "/v1/audit")
        assert Counter(row["object"] for row in log) == Counter(f"token/{row['id']}" for row in tokens)


async def _make_until_killed(killed: KilledControl, names: list[str], answered: dict[str, int]) -> None:
    """Kill control after some answers; the others are under way.

    A busy machine may have answered all of them by then, so the last one is sure to be: its request is not complete.
    """
    enough = len(answered) + AT_ONCE // 3

    async def one(client: httpx2.AsyncClient, name: str) -> None:
        try:
            answer = await make(client, name, killed.kills if name == names[-1] else None)
        except httpx2.HTTPError:
            return
        if answer.status_code == 408:  # the last one, before a slow machine had its answers
            return
        answered[name] = answer.json()["id"]
        if len(answered) == enough:
            killed.kill()

    async with killed.client() as client, asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(one(client, name))


async def _all(client: httpx2.AsyncClient, path: str) -> list[dict[str, Any]]:
    found, cursor = [], ""
    while cursor is not None:
        page = (await client.get(path, params={"cursor": cursor, "limit": 7})).json()
        found += page["items"]
        cursor = page["next"]
    return found
