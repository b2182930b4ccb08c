import asyncio
import subprocess
import sys

import pytest

from fleet.adapters.model_endpoint import Attempts, EndpointRefused, ModelEndpoint
from fleet.ground.errors import ConfigError, ProviderError, ProviderTimeout
from tests.support.openai_server import Answer, OpenAiServer, refused, run_openai_server


async def test_an_endpoint_is_named_without_user_password_and_query() -> None:
    endpoint = ModelEndpoint("ASR", "https://me:secret@host.example:8443/v1/?key=secret", None)
    assert str(endpoint) == "ASR https://host.example:8443/v1"
    assert not endpoint.is_openai
    await endpoint.aclose()
    endpoint = ModelEndpoint("ASR", "http://[::1]:1/v1", None)
    assert str(endpoint) == "ASR http://[::1]:1/v1"
    await endpoint.aclose()


async def test_openai_itself_is_recognised() -> None:
    endpoint = ModelEndpoint("LLM", "https://api.openai.com/v1", "k")
    assert endpoint.is_openai
    await endpoint.aclose()


@pytest.mark.parametrize(
    "url",
    [
        *["", "host/v1", "ws://host/v1", "http:///v1", "http://[::1/v1", "http://h:0x1/v1", "http://h:0/v1"],
        *["http://a..b/v1", "http://.a/v1", f"http://{'a' * 64}.example/v1", "http://a\x7f/v1", "http://h\udc80/v1"],
    ],
)
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base URL of TTS"):
        ModelEndpoint("TTS", url, None)


async def test_a_refused_request_is_told_from_other_failures() -> None:
    with run_openai_server() as server:
        server.chat(refused(422), refused(401), refused(503), Answer([b"hello"], kind="text/plain"))
        endpoint = ModelEndpoint("LLM", server.url, None)
        assert [type(await failure(endpoint)) for _ in range(3)] == [EndpointRefused, ProviderError, ProviderError]
        assert await read(endpoint, server) == b"hello"
        await endpoint.aclose()


def test_no_role_imports_the_openai_library() -> None:
    """It would take a second of CPU at every start, and 14 MB."""
    look = "import sys, fleet.run.up, fleet.adapters.speech.tts_openai; print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize("text", ["服务繁忙", "Größe", "\x80\xff"])
async def test_a_refusal_may_have_headers_in_any_language(
    text: str, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_openai_server() as server:
        url = server.url
        if proxied:
            monkeypatch.setenv("HTTP_PROXY", url.removesuffix("/v1"))
            url = "http://model.example/v1"
        server.chat(Answer([b"{}"], 503, headers={"X-Error-Msg": text, "Location": text, "Retry-After": text}))
        endpoint = ModelEndpoint("LLM", url, None)
        error = await failure(endpoint)
        assert (error.retryable, error.kind) == (True, "server")
        assert len(server.requests) == 1
        await endpoint.aclose()


async def failure(endpoint: ModelEndpoint) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await read(endpoint)
    return caught.value


async def read(endpoint: ModelEndpoint, server: OpenAiServer | None = None) -> bytes:
    deadline = asyncio.get_running_loop().time() + 240
    async with endpoint.post("/chat/completions", deadline, json={"model": "m", "messages": []}) as body:
        assert body.kind == "text/plain"
        data = b""
        while piece := await body.read(deadline):
            data += piece
    return data


async def test_silence_is_a_failure_of_its_own_kind() -> None:
    endpoint = ModelEndpoint("LLM", "http://127.0.0.1:9/v1", None)
    try:
        with pytest.raises(ProviderTimeout, match="was silent") as caught:
            async with endpoint.get("/models", asyncio.get_running_loop().time()):
                pass
        assert caught.value.retryable
    finally:
        await endpoint.aclose()


async def test_attempts_end_after_the_retries() -> None:
    attempts = Attempts(2, asyncio.get_running_loop().time() + 240)
    error = ProviderError("x", retryable=True)
    async with asyncio.timeout(240):
        await attempts.pause(error)
        await attempts.pause(error)
        with pytest.raises(ProviderError) as caught:
            await attempts.pause(error)
    assert caught.value is error


async def test_no_attempt_begins_after_the_deadline() -> None:
    attempts = Attempts(2, asyncio.get_running_loop().time())
    with pytest.raises(ProviderError, match="x"):
        await attempts.pause(ProviderError("x", retryable=True))


async def test_a_lasting_failure_has_no_other_attempt() -> None:
    attempts = Attempts(2, asyncio.get_running_loop().time() + 240)
    with pytest.raises(ProviderError, match="x"):
        await attempts.pause(ProviderError("x", retryable=False))
