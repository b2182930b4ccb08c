from collections.abc import AsyncIterator

import pytest

from tests.support.public_services import PublicServices, public_services


@pytest.fixture
async def services() -> AsyncIterator[PublicServices]:
    async with public_services() as one:
        yield one
