"""The roles' timers wait in virtual time, so no test waits."""

from tests.support.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualTimeLoop]]:
    return {"virtual": VirtualTimeLoop}
