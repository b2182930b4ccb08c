"""A kill of control in the middle of changes loses nothing and does nothing twice."""

import asyncio
from collections import Counter
from collections.abc import Iterator
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

    def client(self) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx2.AsyncClient(
            base_url=f"http://{LOOPBACK}:{self._port}", headers=headers, trust_env=False, timeout=240
        )

    async def start(self) -> None:
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

    def discard(self) -> None:
        if self.process is not None:
            self.process.discard()


@pytest.fixture
def killed(tmp_path: Path, redis_url: str) -> Iterator[KilledControl]:
    control = KilledControl(tmp_path, redis_url)
    yield control
    control.discard()


async def make(client: httpx2.AsyncClient, name: str) -> httpx2.Response:
    body = {"name": name, "scopes": ["tokens:write"]}
    return await client.post("/v1/tokens", json=body, headers={"Idempotency-Key": name})


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
    """Kill control after some answers; the others are under way."""
    assert killed.process is not None
    enough = len(answered) + AT_ONCE // 3

    async def one(client: httpx2.AsyncClient, name: str) -> None:
        try:
            answer = await make(client, name)
        except httpx2.HTTPError:
            return
        answered[name] = answer.json()["id"]
        if len(answered) == enough:
            killed.process.kill()

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
