"""Real servers for all tests: one Redis a test process, one broker a file. Who kills or reconfigures makes its own."""

import functools
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from fleet.wire.identity import CredentialKeys
from tests.support.mosquitto_server import MosquittoServer
from tests.support.patience import REDIS, lengthen
from tests.support.process import running
from tests.support.redis_server import RedisServer
from tests.support.routes_once import read_routes_once

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.support.browser import SharedBrowser

# How long an example takes proves nothing here. `scripts/test --slow` searches with the second profile.
settings.register_profile("fleet", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("fleet"), max_examples=200)
settings.load_profile("fleet")

# As the command `fleet` does: numpy reads it when it is imported, and threads that wait for matrices spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

NEW_OBJECTS = 50_000
"""How many objects a test process makes before it looks for garbage."""

TEST_KEYS = "new:a-key-for-tests-only-1,old:a-key-for-tests-only-2"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Make thousands of tests without looking for garbage, and never look through them again: they stay to the end.

    Later look as seldom as roles do: every 700 new objects, which is usual, took an eighth of a run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS, 20, 20)
        gc.enable()


def _read_authorities_once() -> None:
    """Let all HTTP clients of tests share what they trust: to load that takes each of them 30 ms of a core."""
    import httpcore2

    _changes.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))


def _await_redis() -> None:
    """Let the tests' own clients of Redis wait for it: on a busy machine it may stand still for a while."""
    from tests.support.redis_patience import await_redis

    await_redis(_changes)


def _read_routes_once() -> None:
    """Let all apps of tests share what FastAPI reads of their endpoints: that takes each control 0.1 s of a core."""
    read_routes_once(_changes)


def _compile_statements_once() -> None:
    """Let all databases of tests share the statements that SQLAlchemy has made text of: each takes 0.3 ms of a core."""
    from tests.support.statements_once import compile_statements_once

    compile_statements_once(_changes)


_changes = pytest.MonkeyPatch()
_unchanged = {
    "httpx2": _read_authorities_once,
    "redis": _await_redis,
    "fastapi": _read_routes_once,
    "sqlalchemy": _compile_statements_once,
}
"""What is still to do for a library. Most files import none of them, and to import them takes half a second."""


def pytest_collection_modifyitems() -> None:
    """Change a library for all tests of this process as soon as a file of tests has imported it."""
    for library in _unchanged.keys() & sys.modules.keys():
        _unchanged.pop(library)()


def pytest_unconfigure() -> None:
    _changes.undo()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The Redis of this test run. Use `redis_url`, unless nothing in it matters."""
    with running(RedisServer(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Address of a Redis that holds nothing: no key, no function."""
    import redis  # 0.3 seconds, which most files need not

    from tests.support.redis_patience import await_redis

    await_redis(monkeypatch)
    lengthen(monkeypatch, REDIS)

    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
        client.function_flush()
    return redis_server.url


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what waits for Redis in this process wait longer: a busy machine must not change the outcome."""
    lengthen(monkeypatch, REDIS)


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A durable Redis for one test that may stop, kill and restart it."""
    with running(RedisServer(tmp_path, durable=True)) as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> "Iterator[SharedBrowser]":
    """The Chromium of this test process; use `browser`."""
    from tests.support.browser import SharedBrowser  # 0.2 seconds, which most processes need not

    shared = SharedBrowser()
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def browser(chromium: "SharedBrowser") -> "Iterator[Browser]":
    """A Chromium for the tests of a file that have no loop; each opens windows of its own."""
    with chromium.in_use() as browser:
        yield browser


@pytest.fixture(scope="session")
def keys() -> CredentialKeys:
    """The keys of all test brokers; the first one signs."""
    return CredentialKeys(TEST_KEYS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, keys: CredentialKeys) -> Iterator[MosquittoServer]:
    """The Mosquitto with the plugin for a file of tests. Use a MAC and client ids of your own: others use it too."""
    with running(MosquittoServer(tmp_path_factory.mktemp("broker"), keys)) as server:
        yield server


@pytest.fixture
def own_broker(tmp_path: Path, keys: CredentialKeys) -> Iterator[MosquittoServer]:
    """A Mosquitto with the plugin for one test that may stop, kill, reload and restart it."""
    with running(MosquittoServer(tmp_path, keys)) as server:
        yield server


@pytest.fixture(scope="module")
def plain_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MosquittoServer]:
    """A Mosquitto without plugin for a file of tests; it lets everybody in."""
    with running(MosquittoServer(tmp_path_factory.mktemp("plain_broker"))) as server:
        yield server
