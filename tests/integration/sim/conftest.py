"""What the tests of simulated devices share."""

from collections.abc import AsyncIterator

import pytest

from tests.support.patience import lengthen
from tests.support.scripted_server import ScriptedServer

SIM = "fleet.workbench.sim"
WAITS = (
    f"{SIM}.bootstrap.raw_request.PATIENCE",
    f"{SIM}.bootstrap.request.SECONDS",
    f"{SIM}.conversation.LISTEN_SECONDS",
    f"{SIM}.crowd.crowd._ASKED_SECONDS",
    f"{SIM}.network.download._SECONDS",
    f"{SIM}.network.slow_reader._SECONDS",
    f"{SIM}.scripted.mqtt_connection.CONNECT_SECONDS",
)


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let devices wait longer for a server that answers."""
    lengthen(monkeypatch, WAITS)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer.running() as running:
        yield running
