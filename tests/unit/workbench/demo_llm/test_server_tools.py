"""The demo model with the server's tools offered beside a device's: what it did before, it does still."""

import json

import pytest

from fleet.adapters.tools.load import open_tools
from fleet.core.ports import ToolOffer
from fleet.ground.settings import load
from fleet.workbench.demo_llm.schemas import Tool, understand
from tests.support.demo_tools import stock_tools, talk

STATUS, VOLUME = "get_device_status", "audio_speaker_set_volume"


def understood(offer: ToolOffer) -> Tool:
    return understand(offer.name, offer.description, offer.parameters)


async def offered() -> tuple[Tool, ...]:
    async with open_tools(load()) as tools:
        return (*stock_tools(), *map(understood, tools.offers))


@pytest.mark.parametrize(
    "said",
    [
        "what time is it",
        "现在几点了",
        "what day is it",
        "今天几号",
        "what's the date tomorrow",
        "set the volume to thirty percent",
        "把音量调到百分之三十",
        "louder",
        "声音大一点",
        "what is the battery level",
        "电量还有多少",
        "dark theme please",
        "换成深色主题",
        "take a photo",
        "status",
        "network",
        "mute",
        "set the screen brightness to fifty",
        "hello",
        "你好",
    ],
)
async def test_a_devices_own_matters_are_understood_as_before(said: str) -> None:
    assert talk(said, await offered()) == talk(said, stock_tools())


@pytest.mark.parametrize(
    ("said", "city"), [("what is the weather like tomorrow in london", "London"), ("北京天气怎么样", "北京")]
)
async def test_the_weather_of_a_city_is_asked_for(said: str, city: str) -> None:
    answer = json.dumps({"city": city, "condition": "Sunny", "temperature": 22, "humidity": 45})
    calls, told = talk(said, await offered(), answers={"get_weather": answer})
    assert [name for name, _ in calls] == ["get_weather"]
    assert calls[0][1]["city"] == city
    assert "22" in told


@pytest.mark.parametrize("said", ["what's the weather", "今天天气怎么样"])
async def test_without_a_city_it_asks_for_one(said: str) -> None:
    calls, told = talk(said, await offered())
    assert calls == []
    assert told.endswith(("?", "？"))
