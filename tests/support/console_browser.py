"""What a browser does with control: it keeps cookies, and names the page that it shows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from fleet.adapters.sql.account_rows import AccountRow, AccountRows
from tests.support.control_server import ControlStage

PASSWORD = "correct horse battery"


class ConsoleBrowser:
    """A browser on a page of control."""

    def __init__(self, client: httpx2.AsyncClient, origin: str) -> None:
        self.client = client
        self.page = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
        """What it sends of the page that it shows."""

    async def ask(self, verb: str, **more: Any) -> httpx2.Response:
        """Send a request, such as `GET /v1/me`."""
        method, _, path = verb.partition(" ")
        return await self.client.request(method, path, headers={**self.page, **more.pop("headers", {})}, **more)

    async def sign_in(self, name: str, password: str = PASSWORD, **more: Any) -> httpx2.Response:
        return await self.ask("POST /v1/session", json={"name": name, "password": password}, **more)

    @asynccontextmanager
    async def follow(self, path: str) -> AsyncIterator[AsyncIterator[str]]:
        """Follow a stream of events; give the lines after the first one."""
        headers = {"Accept": "text/event-stream", "Sec-Fetch-Site": "same-origin"}
        async with self.client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200
            lines = answer.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            yield lines

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies by name, without the port that ends it."""
        return {cookie.name.rpartition("-")[0]: str(cookie.value) for cookie in self.client.cookies.jar}


@asynccontextmanager
async def console_browser(stage: ControlStage) -> AsyncIterator[ConsoleBrowser]:
    """Open a browser without cookies."""
    url = str(stage.client.base_url).rstrip("/")
    async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=240) as client:
        yield ConsoleBrowser(client, url)


async def add_account(stage: ControlStage, name: str, role: str, *, tenant: int = 1) -> AccountRow:
    """Add an account with the usual password."""
    password = await stage.services.passwords.hash(PASSWORD)
    return await AccountRows(stage.database).add(tenant, name, role, password, 1)
