"""What a process reports of its event loop."""

import asyncio
import gc
import subprocess
import sys

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


def test_what_was_logged_last_is_written_when_a_second_signal_ends_the_process_at_once() -> None:
    code = (
        "import asyncio, logging, os, signal, sys\n"
        "from fleet.ground import log, runtime\n"
        "async def main():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    try:\n"
        "        await asyncio.get_running_loop().create_future()\n"
        "    finally:\n"
        "        logging.getLogger('fleet').info('last words')\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        await asyncio.sleep(0)\n"
        "        await asyncio.sleep(0)\n"
        "log.COLLECT_SECONDS = 60\n"
        "log.configure('info', 'json', pii=False)\n"
        "sys.exit(runtime.run(main))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240)
    assert ended.returncode == runtime.EXIT_FAILED, ended.stderr
    assert "last words" in ended.stderr
