"""What tests of the front share."""

from collections.abc import AsyncIterator

import pytest

from tests.support.front_client import FrontClient


@pytest.fixture(autouse=True)
async def _no_connection_left() -> AsyncIterator[None]:
    yield
    await FrontClient.discard_all()
