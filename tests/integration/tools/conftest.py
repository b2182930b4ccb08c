from collections.abc import AsyncIterator

import pytest

from tests.support.patience import lengthen
from tests.support.public_services import PublicServices, public_services


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tools wait longer for services that answer. A test of a limit sets it anew."""
    lengthen(monkeypatch, ("fleet.adapters.tools.load.SOURCE_SECONDS",))


@pytest.fixture
async def services() -> AsyncIterator[PublicServices]:
    async with public_services() as one:
        yield one
