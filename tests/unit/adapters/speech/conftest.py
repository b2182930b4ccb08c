"""The models run in threads of their own, which virtual time does not wait for: here time is real."""

import asyncio


def pytest_asyncio_loop_factories() -> dict[str, type[asyncio.AbstractEventLoop]]:
    return {"real": asyncio.SelectorEventLoop}
