"""The sample plugins of docs/samples, installed by pip as an operator would, and used through the settings."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from fleet.adapters import plugins
from fleet.adapters.speech.load import load_asr, load_tts
from fleet.adapters.tools.load import open_tools
from fleet.core.ports import Message, TextDelta, Transcript
from fleet.core.server_tools import Caller
from fleet.ground.errors import ConfigError, FleetError
from fleet.ground.settings import load
from fleet.run.llm import chat_model
from tests.support.endless_server import endless_server
from tests.support.openai_server import Answer, OpenAiServer, refused, run_openai_server

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"
LIMIT = 240.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all samples are installed."""
    target = tmp_path_factory.mktemp("plugins")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    samples = [str(path.parent) for path in sorted(SAMPLES.glob("*/pyproject.toml"))]
    pip = [sys.executable, "-m", "pip", "install", "-q", *options, "--target", str(target), *samples]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(autouse=True)
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with run_openai_server() as one:
        yield one


async def test_a_recogniser_of_another_request_shape(server: OpenAiServer) -> None:
    server.script("recognize", Answer([b'{"text": " good day ", "language": "en"}']), refused(401), Answer([b"[]"]))
    asr = load_asr(load(asr_provider="raw-pcm", asr_base_url=server.url, asr_api_key="k"))
    try:
        async with asyncio.timeout(LIMIT):
            assert await asr.transcribe(b"\x01\x00" * 100) == Transcript("good day", "en")
            with pytest.raises(FleetError, match=r"ASR http.* refused the key \(401"):
                await asr.transcribe(b"\x01\x00")
            with pytest.raises(FleetError, match="gave an answer without a text"):
                await asr.transcribe(b"\x01\x00")
    finally:
        await asr.aclose()
    assert server.requests[0].body == b"\x01\x00" * 100
    assert server.requests[0].headers["authorization"] == "Bearer k"


async def test_a_voice_of_another_request_shape(server: OpenAiServer) -> None:
    server.script("synthesize", Answer([b"\x01\x00\x02", b"\x00\x03\x00"], kind="audio/pcm"))
    tts = load_tts(load(tts_provider="raw-pcm", tts_base_url=server.url, tts_voice="ann"))
    try:
        async with asyncio.timeout(LIMIT):
            pieces = [piece async for piece in tts.speak("Hello.", "en")]
    finally:
        await tts.aclose()
    assert b"".join(pieces) == b"\x01\x00\x02\x00\x03\x00"
    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert tts.sample_rate == 24_000
    assert server.requests[0].json == {"text": "Hello.", "voice": "ann", "language": "en", "speed": 1.0}


async def test_a_chat_model_needs_no_endpoint() -> None:
    async with asyncio.timeout(LIMIT), chat_model(load(llm_provider="parrot", llm_model="Polly")) as llm:
        events = [event async for event in llm.stream([Message("user", "hello")], [])]
    assert events == [TextDelta("Polly says: "), TextDelta("hello")]


async def test_tools_are_offered_beside_the_built_in_ones_and_say_whether_they_may_be_repeated() -> None:
    async with asyncio.timeout(LIMIT), open_tools(load(tool_plugins="coin")) as tools:
        assert {"flip_coin", "get_current_time"} <= {offer.name for offer in tools.offers}
        result = await tools.call("flip_coin", {"times": 3}, Caller("s"))
        assert not result.failed
        assert set(json.loads(json.dumps(result.value))) <= {"heads", "tails"}
        assert (await tools.call("flip_coin", {"times": 99}, Caller("s"))).failed
        assert not tools.repeatable("flip_coin")
        assert tools.repeatable("get_current_time")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"asr_provider": "x"}, "ASR_PROVIDER: there is no 'x'; there are: openai, offline, raw-pcm"),
        ({"tts_provider": "x"}, "TTS_PROVIDER: there is no 'x'; there are: openai, offline, raw-pcm"),
        ({"llm_provider": "x"}, "LLM_PROVIDER: there is no 'x'; there are: openai, parrot"),
        ({"tool_plugins": "coin, x"}, "FLEET_TOOL_PLUGINS: there is no 'x'; there are: coin"),
        ({"tool_plugins": "coin,coin"}, "FLEET_TOOL_PLUGINS: 'coin' has a tool 'flip_coin', which is there already"),
        ({"asr_provider": "raw-pcm"}, "ASR_BASE_URL is missing"),
        ({"asr_provider": "openai"}, "ASR_BASE_URL is missing"),
    ],
)
async def test_a_provider_that_cannot_be_is_a_clear_error(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await use(**settings)


async def use(**settings: str) -> None:
    named = load(**settings)
    if named.asr_provider:
        load_asr(named)
    elif named.tts_provider:
        load_tts(named)
    async with open_tools(named), chat_model(named):
        pass


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (["no_such_module:load"], "the plugin 'it' cannot be loaded: No module named"),
        (["json:no_such_name"], "the plugin 'it' cannot be loaded"),
        (["json:__name__"], "names json:__name__, which cannot be called"),
        (["json:loads", "pickle:loads"], "more than one plugin is called 'it': json:loads, pickle:loads"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_a_clear_error(
    points: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = EntryPoints(EntryPoint("it", value, "fleet.asr") for value in points)
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    with pytest.raises(ConfigError, match=message):
        load_asr(load(asr_provider="it"))


@pytest.mark.parametrize("body", ["announced", "never ends", "packed", "slow", "headers", "deep"])
@pytest.mark.parametrize("status", [200, 500, 307])
async def test_a_plugin_that_uses_the_bounded_client_needs_no_bounds_of_its_own(status: int, body: str) -> None:
    with endless_server(status, body) as hostile:
        asr = load_asr(load(asr_provider="raw-pcm", asr_base_url=f"{hostile.url}/v1", asr_timeout=1.5))
        try:
            with pytest.raises(FleetError):
                async with asyncio.timeout(LIMIT):
                    await asr.transcribe(bytes(3200))
        finally:
            await asr.aclose()
