from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.integration.worker.scripted import Device
from tests.support.role_site import RoleSite, one_of_each_shard, role_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[RoleSite]:
    """A broker and a durable Redis of this test's own, without roles yet."""
    with role_site(tmp_path, durable=True) as site:
        yield site
        crashes = [line for role in site.roles for line in role.lines if _is_crash(line)]
    assert crashes == []


@pytest.fixture
async def devices(site: RoleSite) -> AsyncIterator[list[Device]]:
    """A device of each shard."""
    async with AsyncExitStack() as stack:
        found = [await Device.connect(site.broker, site.keys, mac) for mac in one_of_each_shard()]
        for device in found:
            stack.push_async_callback(device.close)
        yield found


def _is_crash(line: dict[str, object]) -> bool:
    """Whether a role wrote what is no log line, or that something it does not expect happened."""
    return line.get("level") == "raw" or "crashed" in str(line["message"])
