"""What a process reports of its event loop."""

import asyncio
import gc

import pytest

from fleet.ground import runtime


def test_a_look_up_that_a_time_limit_ended_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        connecting = asyncio.create_task(asyncio.open_connection("nowhere.invalid", 1))
        await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        # Until the abandoned one has ended too.
        await asyncio.wait([asyncio.ensure_future(loop.getaddrinfo("nowhere.invalid", 1)) for _ in range(8)])
        loop.create_future().set_exception(ZeroDivisionError())
        gc.collect()
        return 0

    assert runtime.run(main) == 0
    assert "ZeroDivisionError" in caplog.text
    assert "gaierror" not in caplog.text
