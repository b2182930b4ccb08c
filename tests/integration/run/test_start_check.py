"""What is wrong with an endpoint or a public name is logged at the start, with the variable to correct."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from fleet.ground.settings import Settings
from fleet.run.start_check import (
    CheckedModel,
    chat_models,
    checking_models,
    checking_names,
    photo_models,
    speech_models,
)
from tests.support.openai_server import Answer, OpenAiServer, run_openai_server
from tests.support.patience import lengthen


@pytest.fixture(autouse=True)
def _models_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    lengthen(monkeypatch, ("fleet.run.start_check._SECONDS",))


@pytest.fixture
def openai_server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


async def logged(caplog: pytest.LogCaptureFixture, *models: CheckedModel) -> list[tuple[str, str]]:
    """Return reason and remedy of each fault of a model that is certain."""
    async with checking_models(*models):
        (task,) = (one for one in asyncio.all_tasks() if one.get_name() == "check of the models")
        await task
    return complaints(caplog)


def complaints(caplog: pytest.LogCaptureFixture, level: int = logging.ERROR) -> list[tuple[str, str]]:
    records = [vars(record) for record in caplog.records if record.levelno == level]
    return [(record["reason"], record["remedy"]) for record in records]


async def test_a_model_that_is_listed_is_right(openai_server: OpenAiServer, caplog: pytest.LogCaptureFixture) -> None:
    openai_server.models("m", "n")
    assert not await logged(caplog, CheckedModel("LLM", openai_server.url, SecretStr("k"), "m"))
    assert openai_server.requests[0].headers["authorization"] == "Bearer k"


async def test_an_unlisted_model_is_a_warning_and_another_one_is_proposed(
    openai_server: OpenAiServer, caplog: pytest.LogCaptureFixture
) -> None:
    openai_server.models("gpt-4o", "gpt-4o-mini", "whisper-1")
    assert not await logged(caplog, CheckedModel("LLM", openai_server.url, None, "gpt4o")), "lists may be incomplete"
    ((reason, remedy),) = complaints(caplog, logging.WARNING)
    assert "does not list the model gpt4o" in reason
    assert remedy.startswith("set LLM_MODEL to a model of the endpoint, such as gpt-4o")


@pytest.mark.parametrize(("key", "remedy"), [(SecretStr("k"), "correct ASR_API_KEY"), (None, "set ASR_API_KEY")])
async def test_a_key_that_is_refused_is_named(
    openai_server: OpenAiServer, caplog: pytest.LogCaptureFixture, key: SecretStr | None, remedy: str
) -> None:
    openai_server.script("models", Answer([b"{}"], status=401))
    ((reason, shown_remedy),) = await logged(caplog, CheckedModel("ASR", openai_server.url, key, "whisper-1"))
    assert "refused the key (401)" in reason and shown_remedy == remedy


async def test_an_endpoint_without_a_list_is_not_judged(
    openai_server: OpenAiServer, caplog: pytest.LogCaptureFixture
) -> None:
    openai_server.script("models", Answer([b"{}"], status=404))
    assert not await logged(caplog, CheckedModel("TTS", openai_server.url, None, "tts-1"))


async def test_a_host_that_is_unknown_is_named(caplog: pytest.LogCaptureFixture) -> None:
    ((reason, remedy),) = await logged(caplog, CheckedModel("LLM", "http://nowhere.invalid/v1", None, None))
    assert "http://nowhere.invalid/v1 cannot be reached" in reason and remedy.startswith("correct LLM_BASE_URL")


async def test_a_public_name_that_is_unknown_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(
        public_host="localhost",
        mqtt_public="nowhere.invalid:8883",
        http_public="http://also.invalid",
        udp_public="too.invalid:8889",
    )
    async with checking_names(settings):
        (task,) = (one for one in asyncio.all_tasks() if one.get_name() == "check of public names")
        await task
    mqtt, http, udp = complaints(caplog)
    assert mqtt[0].startswith("FLEET_MQTT_PUBLIC: nowhere.invalid cannot be resolved")
    assert http[0].startswith("FLEET_HTTP_PUBLIC: also.invalid cannot be resolved")
    assert udp[0].startswith("FLEET_UDP_PUBLIC: too.invalid cannot be resolved")


def test_a_photo_model_of_its_own_is_checked_with_the_key_of_its_endpoint() -> None:
    chat = Settings(llm_base_url="http://h/v1", llm_api_key=SecretStr("k"))
    assert not photo_models(chat), "photos go to the chat model"
    (same,) = photo_models(chat.model_copy(update={"vision_model": "eye"}))
    assert (same.url, same.model, same.key) == ("http://h/v1", "eye", SecretStr("k"))
    (own,) = photo_models(chat.model_copy(update={"vision_base_url": "http://eye/v1"}))
    assert (own.url, own.key) == ("http://eye/v1", None)


def test_only_endpoints_are_asked() -> None:
    assert not chat_models(Settings()) and not speech_models(Settings())
    endpoint = "http://h/v1"
    both = Settings(llm_base_url=endpoint, llm_fallback_base_url=endpoint)
    assert [(one.prefix, one.model) for one in chat_models(both)] == [("LLM", None), ("LLM_FALLBACK", None)]
    speech = Settings(asr_base_url=endpoint, tts_base_url=endpoint, tts_provider="of-a-plugin")
    assert [one.prefix for one in speech_models(speech)] == ["ASR"]
