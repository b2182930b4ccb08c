"""The Redis that pip installs, as a real child process."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis.asyncio
from redis.exceptions import OutOfMemoryError

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError, Unavailable
from fleet.run.embedded import redis as embedded_redis
from fleet.run.embedded.redis import EmbeddedRedis

PARENT = """
import asyncio, pathlib, sys
from fleet.run.embedded.redis import EmbeddedRedis
async def main():
    server = EmbeddedRedis(pathlib.Path(sys.argv[1]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@asynccontextmanager
async def running(directory: Path, **more: int) -> AsyncIterator[EmbeddedRedis]:
    server = EmbeddedRedis(directory, **more)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def client(server: EmbeddedRedis) -> AsyncIterator[redis.asyncio.Redis]:
    connection = redis.asyncio.Redis.from_url(server.url, decode_responses=True)
    try:
        yield connection
    finally:
        await connection.aclose()


async def gone(pid: int) -> None:
    """Wait until a process that may be somebody else's child has ended."""
    async with asyncio.timeout(240):
        while alive(pid):
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.usefixtures("patient")
async def test_functions_of_the_store_work_on_it(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        store = await Store.open(server.url, 16)
        await store.close()
        async with client(server) as connection:
            await connection.function_load(
                "#!lua name=t\nredis.register_function('t_add', function(k, a) return a[1] + 1 end)"
            )
            assert await connection.fcall("t_add", 0, "41") == 42


async def test_data_survives_stop_and_kill(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path)
    await server.start()
    async with client(server) as connection:
        await connection.set("first", "1")
    await server.stop()
    assert server.pid is None
    await server.start()
    async with client(server) as connection:
        await connection.set("second", "2")
        await connection.execute_command("WAITAOF", 1, 0, 240_000)
        os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(Unavailable, match="ended with code -9"):
        await server.run()
    await server.start()
    async with client(server) as connection:
        assert await connection.mget("first", "second") == ["1", "2"]
    await server.stop()


async def test_nobody_comes_in_without_the_password(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"PING\r\n")
        async with asyncio.timeout(240):
            assert (await reader.readline()).startswith(b"-NOAUTH")
        writer.close()
        await writer.wait_closed()
        assert places_of(server._password, tmp_path, server.pid) == []


def places_of(secret: str, directory: Path, pid: int | None) -> list[Path]:
    """Return the files that hold a text, among those of a directory and the command line of a process."""
    files = [Path(f"/proc/{pid}/cmdline"), *(path for path in directory.rglob("*") if path.is_file())]
    return [path for path in files if secret in path.read_text("latin-1")]


async def test_settings_are_those_that_keep_data(tmp_path: Path) -> None:
    async with running(tmp_path, memory=8 * 1024 * 1024) as server, client(server) as connection:
        config = await connection.config_get("*")
        assert (config["appendonly"], config["maxmemory-policy"], config["bind"]) == ("yes", "noeviction", "127.0.0.1")
        with pytest.raises(OutOfMemoryError):
            for number in range(20):
                await connection.set(f"big{number}", "x" * 1_000_000)


async def test_second_one_on_the_same_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_redis, "_LOCK_SECONDS", 0.1)
    async with running(tmp_path) as first:
        with pytest.raises(ConfigError, match=f"another fleet uses {tmp_path}"):
            await EmbeddedRedis(tmp_path).start()
        async with client(first) as connection:
            assert await connection.ping()
    async with running(tmp_path):
        pass


async def test_it_dies_with_a_killed_parent_and_its_directory_is_free_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    parent = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert parent.stdout is not None
        async with asyncio.timeout(240):
            pid = int(await parent.stdout.readline())
    finally:
        parent.kill()
        await parent.wait()
    await gone(pid)
    async with running(tmp_path):
        pass


async def test_cancelled_run_stops_it(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path)
    await server.start()
    pid = server.pid
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await asyncio.sleep(0)
        task.cancel()
    assert server.pid is None
    await gone(pid)


async def test_damaged_data_is_told_with_what_the_server_said(tmp_path: Path) -> None:
    async with running(tmp_path) as server, client(server) as connection:
        await connection.set("key", "value")
    for path in (tmp_path / "appendonlydir").glob("*.incr.aof"):
        path.write_bytes(b"junk" + path.read_bytes())
    with pytest.raises(Unavailable, match="Bad file format"):
        await EmbeddedRedis(tmp_path).start()


def test_its_directory_is_closed_to_others(tmp_path: Path) -> None:
    EmbeddedRedis(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


async def test_odd_directory_names_work(tmp_path: Path) -> None:
    async with running(tmp_path / 'a "quoted" \\ name, ünusual') as server, client(server) as connection:
        assert await connection.ping()
