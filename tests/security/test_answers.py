"""Servers that answer a client of ours with what no client can take: memory hardly rises, and the client gives up.

The clients come from the registries of providers and tools, and from the modules that hold a client, so that a new one
is tried without being named here.
"""

import asyncio
import functools
import itertools
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import certifi
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

from fleet.adapters import http_client
from fleet.adapters.model_endpoint import ModelEndpoint
from fleet.adapters.net.kubernetes_node import Cluster, read_node
from fleet.adapters.net.mqtt.emqx import Emqx
from fleet.adapters.speech.load import ASR_PROVIDERS, TTS_PROVIDERS, load_asr, load_tts
from fleet.adapters.tools.clock import Zones
from fleet.adapters.tools.json_source import JsonSource
from fleet.adapters.tools.load import open_tools
from fleet.adapters.tools.mcp_config import HttpTransport
from fleet.adapters.tools.mcp_http import open_http
from fleet.core.ports import Message
from fleet.core.server_tools import Caller
from fleet.ground.errors import FleetError, ProviderError
from fleet.ground.settings import Settings, load
from fleet.run.llm import LLM_PROVIDERS, chat_model
from fleet.run.vision import load_vision
from fleet.wire.identity import CredentialKeys
from tests.support.endless_server import BODIES, endless_server

LIMIT = 240.0
"""Seconds until a client has to have given up."""
SECONDS = 1.5
"""What the settings allow each request."""
LARGEST_RISE = 8
"""MB; the connection's own buffers are among them."""
DRIPS = "slow"
AT_ONCE = [body for body in BODIES if body != DRIPS]
KINDS = ("application/json", "text/event-stream", "audio/wav")
OFFLINE = {"offline"}
"""Providers that ask no server."""
ADAPTERS = Path(http_client.__file__).parent
END = "-----END CERTIFICATE-----\n"
AUTHORITY = Path(certifi.where()).read_text(encoding="utf-8").partition(END)[0] + END
ZONES = functools.cache(Zones)
"""The time zones, read once: hundreds of tests here open all tools, and none asks for the time."""

Ask = Callable[[str], Awaitable[None]]


def endpoint(kind: str, provider: str, url: str, **more: Any) -> Settings:
    named = {f"{kind}_provider": provider, f"{kind}_base_url": f"{url}/v1", f"{kind}_model": "m"}
    return load(**named, **{f"{kind}_timeout": SECONDS}, **more)


def ask_llm(provider: str) -> Ask:
    async def ask(url: str) -> None:
        async with chat_model(endpoint("llm", provider, url)) as llm:
            async for _ in llm.stream([Message("user", "hello")], []):
                pass

    return ask


def ask_asr(provider: str) -> Ask:
    async def ask(url: str) -> None:
        asr = load_asr(endpoint("asr", provider, url))
        try:
            await asr.transcribe(bytes(32_000))
        finally:
            await asr.aclose()

    return ask


def ask_tts(provider: str) -> Ask:
    async def ask(url: str) -> None:
        tts = load_tts(endpoint("tts", provider, url))
        try:
            async for _ in tts.speak("Hello.", "en"):
                pass
        finally:
            await tts.aclose()

    return ask


def ask_vision(**model: str) -> Ask:
    async def ask(url: str) -> None:
        vision = load_vision(load(vision_base_url=f"{url}/v1", vision_timeout=SECONDS, **model))
        assert vision is not None
        try:
            await vision.explain(b"jpeg", "what is it")
        finally:
            await vision.aclose()

    return ask


async def ask_any_shape(url: str) -> None:
    """The way for an adapter whose endpoint is not OpenAI's."""
    await recognize(ModelEndpoint("ASR", f"{url}/v1", "k"))


async def recognize(one: ModelEndpoint) -> None:
    deadline = asyncio.get_running_loop().time() + SECONDS
    try:
        async with one.post("/recognize", deadline, content=bytes(32_000)) as body:
            await body.whole(deadline)
    finally:
        await one.aclose()


async def ask_behind_a_proxy(url: str) -> None:
    """The server that answers is the proxy."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("http_proxy", url)
        one = ModelEndpoint("ASR", "http://model.example/v1", "k")
    await recognize(one)


async def ask_any_json(url: str) -> None:
    source = JsonSource(SECONDS)
    try:
        await source.ask("the service", url, post={"what": "anything"}, key="k")
    finally:
        await source.aclose()


def open_asking(url: str, seconds: float) -> Any:
    where = {"weather_url": url, "geocoding_url": url, "location_url": f"{url}/{{ip}}"}
    return open_tools(load(**where, tool_seconds=seconds))


def ask_tool(name: str, seconds: float | None = None) -> Ask:
    async def ask(url: str) -> None:
        async with open_asking(url, seconds or SECONDS) as tools:
            parameters = next(offer.parameters for offer in tools.offers if offer.name == name)
            needed = parameters.get("required", ())
            rules = {key: parameters["properties"][key] for key in needed}
            arguments = {key: rule.get("enum", ["Paris"])[0] for key, rule in rules.items()}
            result = await tools.call(name, arguments, Caller("s", "8.8.8.8"))
        if result.failed:
            raise ProviderError(str(result.value), retryable=False)

    return ask


async def ask_emqx(url: str) -> None:
    emqx = Emqx(url, "key:secret", CredentialKeys("k1:a-key-of-these-tests"))
    async with http_client.BoundedClient(http_client.LARGEST_ERROR, SECONDS, trust_env=False) as client:
        await emqx._kick(client, ["02:00:00:00:00:01"])


async def ask_kubernetes(url: str) -> None:
    with TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text("t")
        # To read one authority takes a thousandth of what all take, and no server here has a certificate.
        authority = Path(folder) / "authority"
        authority.write_text(AUTHORITY)
        await read_node("n", Cluster(url, token, authority))


async def ask_mcp(url: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with suppress(BaseExceptionGroup):  # the library's
        async with asyncio.timeout(SECONDS), open_http(HttpTransport(url=url)) as (read, write):
            await write.send(SessionMessage(JSONRPCRequest.model_validate(request)))
            await read.receive()
    raise TimeoutError


async def tools_that_ask() -> list[str]:
    """Return the names of the tools that ask a server, as they say when there is none."""
    nobody = "http://127.0.0.1:9"
    async with open_asking(nobody, LIMIT) as tools:
        names = [offer.name for offer in tools.offers]
    asking = []
    for name in names:
        try:
            await ask_tool(name, LIMIT)(nobody)
        except ProviderError as error:
            if "cannot be reached" in str(error):
                asking.append(name)
    return asking


# Found out by a test, not here: all processes of a run must read the same list, however busy the machine is.
TOOLS = {f"tool {name}": ask_tool(name) for name in ("get_location", "get_weather")}
CLIENTS: dict[str, Ask] = {
    **{f"llm {name}": ask_llm(name) for name in LLM_PROVIDERS.keys() - OFFLINE},
    **{f"asr {name}": ask_asr(name) for name in ASR_PROVIDERS.keys() - OFFLINE},
    **{f"tts {name}": ask_tts(name) for name in TTS_PROVIDERS.keys() - OFFLINE},
    "vision": ask_vision(vision_model="m"),
    "models": ask_vision(),
    "any shape": ask_any_shape,
    "behind a proxy": ask_behind_a_proxy,
    "any JSON": ask_any_json,
    "emqx": ask_emqx,
    "kubernetes": ask_kubernetes,
    "mcp": ask_mcp,
    **TOOLS,
}
HOLDERS = {
    "llm/chat_endpoint.py": "llm openai",
    "llm/vision.py": "vision",
    "llm/model_name.py": "models",
    "speech/asr_openai.py": "asr openai",
    "speech/tts_openai.py": "tts openai",
    "tools/json_source.py": "any JSON",
    "tools/load.py": "tool get_weather",
    "tools/location.py": "tool get_location",
    "tools/weather_open_meteo.py": "tool get_weather",
    "tools/mcp_http.py": "mcp",
    "net/mqtt/emqx.py": "emqx",
    "net/kubernetes_node.py": "kubernetes",
    "http_streaming.py": "behind a proxy",
    "model_endpoint.py": "any shape",
    "model_list.py": "models",
}
"""Which client above tries the module."""
HOLDING = re.compile(r"\bimport .*\b(BoundedClient|open_streams|ModelEndpoint|JsonSource)\b")


class Memory:
    """Resident memory of this process."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak
        self._before = self._read("VmRSS:")

    @property
    def rise(self) -> int:
        """By how much it was larger at its peak, in MB."""
        return (self._read("VmHWM:") - self._before) // 1024

    def _read(self, name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "ERROR_SECONDS", 0.5)
    monkeypatch.setattr("fleet.adapters.net.kubernetes_node._LIMIT_SECONDS", SECONDS)
    monkeypatch.setattr("fleet.adapters.tools.load.Zones", ZONES)


async def test_every_tool_that_asks_a_server_is_tried() -> None:
    assert {f"tool {name}" for name in await tools_that_ask()} == set(TOOLS)


def test_every_module_that_holds_a_client_is_tried() -> None:
    holders = {
        str(path.relative_to(ADAPTERS))
        for path in ADAPTERS.rglob("*.py")
        if re.search(
            r"\bimport .*\b(BoundedClient|open_streams|ModelEndpoint|JsonSource)\b", path.read_text(encoding="utf-8")
        )
    }
    assert holders == set(HOLDERS)
    assert set(HOLDERS.values()) <= set(CLIENTS)


async def give_up(client: str, status: int, body: str, kind: str) -> None:
    """Return when a client has given up; of a success it may also make what it can."""
    with endless_server(status, body, kind) as server:
        async with asyncio.timeout(LIMIT):
            if status == 200:
                with suppress(FleetError, TimeoutError):
                    await CLIENTS[client](server.url)
            else:
                with pytest.raises((FleetError, TimeoutError)):
                    await CLIENTS[client](server.url)


Answer = tuple[int, str, str]
"""A status, a body and a media type."""


async def rises(client: str, answers: Iterable[Answer]) -> dict[Answer, int]:
    """Return with which answers memory rose too far while a client gave up, and by how much."""
    found = {}
    for answer in answers:
        memory = Memory()
        try:
            await give_up(client, *answer)
        except BaseException as error:
            error.add_note(f"{client} was answered with {answer}")
            raise
        if (rise := memory.rise) >= LARGEST_RISE:
            found[answer] = rise
    return found


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_error_of_200_megabytes_is_not_kept(client: str) -> None:
    assert await rises(client, itertools.product((500, 404, 307), AT_ONCE, KINDS[:1])) == {}


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_success_of_200_megabytes_is_not_kept(client: str) -> None:
    assert await rises(client, itertools.product((200,), AT_ONCE, KINDS)) == {}


@pytest.mark.parametrize(
    ("status", "kind"), [*((status, KINDS[0]) for status in (500, 404, 307)), *((200, kind) for kind in KINDS)]
)
async def test_what_drips_for_ever_is_given_up_by_all_clients(status: int, kind: str) -> None:
    memory = Memory()
    # Side by side: each waits as long as its settings allow.
    async with asyncio.TaskGroup() as group:
        for client in CLIENTS:
            group.create_task(give_up(client, status, DRIPS, kind), name=client)
    assert memory.rise < LARGEST_RISE
