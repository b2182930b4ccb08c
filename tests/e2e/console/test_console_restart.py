"""Control is killed while somebody looks at the console, and started again: the page says so, and misses nothing."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from playwright.sync_api import expect

from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.adapters.redis.keys import Keys
from fleet.core.permissions import SCOPES
from tests.support.browser import Visitor, running_browser
from tests.support.console_page import follow_events, go, open_with_token
from tests.support.migrated import migrated_sqlite
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts, running
from tests.support.redis_server import RedisServer
from tests.support.role_process import RoleProcess
from tests.support.until import until

pytestmark = pytest.mark.slow
LIMIT = 240.0
SHARDS = 16
COUNT = 40
MAC = "02:00:00:00:00:01"


class KilledControl:
    """Control on one port, with a Redis and a database that stay."""

    def __init__(self, folder: Path, store: RedisServer) -> None:
        self.port, self._folder, self._store = free_port(), folder, store
        self.token = OperatorTokens(folder / "tokens").add("test", frozenset(SCOPES))
        self._role: RoleProcess | None = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/console/"

    def start(self) -> None:
        settings = {
            "FLEET_KEYS": "site:a-key-for-role-tests-1",
            "FLEET_REDIS_URL": self._store.url,
            "FLEET_SHARDS": str(SHARDS),
            "FLEET_CONTROL_HOST": LOOPBACK,
            "FLEET_CONTROL_PORT": str(self.port),
            "FLEET_DATA_DIR": str(self._folder),
            "FLEET_DATABASE_URL": f"sqlite:///{self._folder / 'control.db'}",
            "FLEET_OPERATOR_TOKENS_FILE": str(self._folder / "tokens"),
        }
        self._role = RoleProcess("control", settings, self._folder / "control.log")
        until(lambda: accepts(self.port), LIMIT)

    def kill(self) -> None:
        assert self._role is not None
        self._role.kill()

    def discard(self) -> None:
        if self._role is not None:
            self._role.discard()

    def write(self, *names: str) -> None:
        """Let a worker have called tools with these names."""
        keys = Keys(SHARDS)
        with redis.Redis.from_url(self._store.url) as client:
            for name in names:
                data = json.dumps({"tool": name, "outcome": "ok", "ms": 1})
                client.xadd(keys.events(keys.shard(MAC)), {"k": "tool.called", "m": MAC, "d": data})


@contextmanager
def killed_control(folder: Path) -> Iterator[KilledControl]:
    asyncio.run(migrated_sqlite(folder / "control.db"))
    store = RedisServer(folder, durable=True)
    with running(store):
        control = KilledControl(folder, store)
        control.start()
        try:
            yield control
        finally:
            control.discard()


def test_a_killed_control_is_told_and_nothing_that_happened_meanwhile_is_missed(tmp_path: Path) -> None:
    with killed_control(tmp_path) as control, running_browser() as browser:
        visitor = Visitor(browser)
        page = open_with_token(visitor, control.url, control.token)
        go(page, "#/live?view=events")
        told = page.get_by_text("The connection to the server is lost.")
        called = page.locator(".log-line").filter(has_text="Tool called")
        follow_events(page)
        control.write("before")
        expect(called.filter(has_text="tool before")).to_have_count(1, timeout=LIMIT * 1000)
        control.kill()
        expect(told).to_be_visible(timeout=LIMIT * 1000)
        names = [f"call-{number:02}" for number in range(COUNT)]
        control.write(*names[: COUNT // 2])
        control.start()
        expect(told).to_have_count(0, timeout=LIMIT * 1000)
        control.write(*names[COUNT // 2 :])
        expect(called).to_have_count(1 + COUNT, timeout=LIMIT * 1000)
        for name in names:
            expect(called.filter(has_text=name)).to_have_count(1)
        # A page that had not been opened before can be had, too.
        for name in ("Devices", "Firmware"):
            go(page, f"#/{name.lower()}")
            expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        page.close()
        visitor.leave()
        # Chromium itself tells of each request that found nobody.
        assert [one for one in visitor.complaints if "net::ERR_" not in one] == []
