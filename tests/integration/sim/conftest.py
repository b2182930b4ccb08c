"""What the tests of simulated devices share."""

from collections.abc import AsyncIterator

import pytest

from tests.support.scripted_server import ScriptedServer


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer.running() as running:
        yield running
