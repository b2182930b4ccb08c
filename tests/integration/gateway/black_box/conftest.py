"""Real gateways, a scripted model, and clients over real sockets."""

import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.gateway_client import GatewayClient, gateway_client
from tests.support.gateway_process import GatewayProcess, gateway_process, hasty_settings, unusual_settings
from tests.support.ports import LOOPBACK
from tests.support.process import running
from tests.support.redis_server import RedisServer
from tests.support.scripted_llm import ScriptedLlm, run_scripted_llm


@pytest.fixture(scope="session")
def llm() -> Iterator[ScriptedLlm]:
    with run_scripted_llm() as server:
        yield server


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm) -> Iterator[GatewayProcess]:
    """A gateway with nothing set but the model's address and a port."""
    with gateway_process(tmp_path_factory.mktemp("gateway"), LLM_BASE_URL=llm.url) as process:
        yield process


@pytest.fixture
async def client(gateway: GatewayProcess) -> AsyncIterator[GatewayClient]:
    async with gateway_client(gateway.url) as connected:
        yield connected


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The Redis that `hasty`, `unusual` and `twin` share."""
    with running(RedisServer(tmp_path_factory.mktemp("store"))) as server:
        yield server


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm, store: RedisServer) -> Iterator[GatewayProcess]:
    """A gateway with limits of tools and sessions in time so short that tests meet them."""
    with socket.create_server((LOOPBACK, 0)) as silent:
        settings = hasty_settings(llm.url, store.url, f"http://{LOOPBACK}:{silent.getsockname()[1]}")
        with gateway_process(tmp_path_factory.mktemp("hasty"), **settings) as process:
            yield process


@pytest.fixture(scope="session")
def unusual(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm, store: RedisServer) -> Iterator[GatewayProcess]:
    """A gateway with limits in number so small that tests meet them, and with everything else set unusually."""
    with gateway_process(tmp_path_factory.mktemp("unusual"), **unusual_settings(llm.url, store.url)) as process:
        yield process


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm, store: RedisServer) -> Iterator[GatewayProcess]:
    """A gateway with everything switched off."""
    settings = {
        "CLIENT_TOOLS_ENABLED": "false",
        "CLOUD_LOG_LEVEL": "WARNING",
        "FLEET_REDIS_URL": store.url,
        "LLM_BASE_URL": f"{llm.url}/",
        "MCP_ENABLED": "false",
    }
    with gateway_process(tmp_path_factory.mktemp("bare"), **settings) as process:
        yield process


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm, store: RedisServer) -> Iterator[GatewayProcess]:
    """A gateway whose sessions outlive it, and to which the world outside is not there."""
    with socket.socket() as closed:
        closed.bind((LOOPBACK, 0))  # and does not listen: nobody else does, either
        nowhere = f"http://{LOOPBACK}:{closed.getsockname()[1]}"
        outside = {"FLEET_GEOCODING_URL": nowhere, "FLEET_WEATHER_URL": nowhere}
        settings = {"LLM_BASE_URL": llm.url, "FLEET_REDIS_URL": store.url, **outside}
        with gateway_process(tmp_path_factory.mktemp("twin"), **settings) as process:
            yield process
