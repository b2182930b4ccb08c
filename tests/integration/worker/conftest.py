from collections.abc import AsyncIterator

import pytest

from fleet.roles.worker.turns import turns
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import Scene, scene
from tests.support.mosquitto_server import MosquittoServer
from tests.support.patience import TURNS, lengthen


@pytest.fixture
async def stage(redis_url: str, broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[Scene]:
    """A worker with one device and one edge."""
    async with scene(redis_url, broker, keys) as one:
        yield one


@pytest.fixture(autouse=True)
def _turns_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lengthen(monkeypatch, TURNS)


@pytest.fixture(autouse=True)
def _turns_do_not_wait_for_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most devices here never answer what they are asked for; a turn would wait two seconds each time."""
    monkeypatch.setattr(turns, "TOOLS_SECONDS", 0.01)
