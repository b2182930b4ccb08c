"""All timers of unit tests wait in virtual time, so no test waits; `elapse` lets time pass."""

from tests.support.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualTimeLoop]]:
    return {"virtual": VirtualTimeLoop}
