"""The weather from a real HTTP server that answers as open-meteo does, or badly."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.adapters.tools import load as loading
from fleet.adapters.tools.load import open_tools
from fleet.core.server_tools import Caller, ServerResult
from fleet.ground.settings import load
from tests.support.ports import LOOPBACK, free_port
from tests.support.public_services import PublicServices

PATIENCE = 240.0
USUAL = loading.SOURCE_SECONDS


@pytest.fixture(autouse=True)
def july(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Let it be a day in July, three in the morning of the next in Beijing."""
    day = datetime(2025, 7, 1, 19, tzinfo=UTC)
    monkeypatch.setattr(loading, "_now", lambda: day)
    return day


async def ask(url: str, city: str, date: str | None = None, **settings: Any) -> ServerResult:
    named = load(**{"weather_url": url, "geocoding_url": url, "tool_seconds": PATIENCE, **settings})
    arguments: Any = {"city": city} | ({} if date is None else {"date": date})
    async with open_tools(named) as tools, asyncio.timeout(PATIENCE):
        return await tools.call("get_weather", arguments, Caller("s"))


async def test_the_present_weather_is_told_of_a_city_named_in_chinese(services: PublicServices) -> None:
    result = await ask(services.url, "北京")
    assert not result.failed
    assert result.value == {
        "city": "北京市",
        "region": "北京市",
        "country": "中国",
        "date": "2025-07-02",
        "timezone": "Asia/Shanghai",
        "condition": "Sunny",
        "temperature": 22.4,
        "apparent_temperature": 21.0,
        "temperature_max": 30.1,
        "temperature_min": 19.2,
        "humidity": 45.0,
        "precipitation_probability": 80.0,
        "wind_speed": 8.6,
    }
    (_, search), (_, forecast) = services.asked
    assert search["language"] == "zh"
    assert forecast["start_date"] == forecast["end_date"] == "2025-07-02"


async def test_another_day_is_told_by_its_means(services: PublicServices) -> None:
    result: Any = await ask(services.url, "Paris", "tomorrow")
    assert result.value["date"] == "2025-07-02"
    assert (result.value["condition"], result.value["temperature"], result.value["humidity"]) == (
        "Light rain",
        24.9,
        70,
    )
    assert "current" not in services.asked[1][1]


async def test_what_stands_after_a_comma_chooses_among_places_of_one_name(services: PublicServices) -> None:
    result: Any = await ask(services.url, "Paris, Texas")
    assert result.value["country"] == "United States"
    assert services.asked[1][1]["timezone"] == "America/Chicago"


async def test_a_citys_suffix_is_left_out_where_it_is_not_found_with_it(services: PublicServices) -> None:
    assert not (await ask(services.url, "北京市")).failed
    assert [query["name"] for path, query in services.asked if path == "/v1/search"] == ["北京市", "北京"]


async def test_without_a_city_it_is_the_place_of_the_settings(services: PublicServices) -> None:
    result: Any = await ask(services.url, "", location="Paris, France")
    assert result.value["country"] == "France"
    unknown = await ask(services.url, "")
    assert unknown.failed
    assert "name a city" in str(unknown.value)


@pytest.mark.parametrize(
    ("city", "date", "told"),
    [
        ("Atlantis", "", "no city 'Atlantis'"),
        ("Paris", "someday", "'someday' is not understood"),
        ("Paris", "2025-12-24", "only that from 2025-05-02 to 2025-07-16"),
        ("Paris", "1999-01-01", "not known"),
    ],
)
async def test_what_is_not_known_is_said_so(services: PublicServices, city: str, date: str, told: str) -> None:
    result = await ask(services.url, city, date)
    assert result.failed
    assert told in str(result.value)


async def test_a_key_goes_to_both_servers_and_into_no_message(services: PublicServices) -> None:
    await ask(services.url, "Paris", weather_api_key="hush")
    assert [query["apikey"] for _, query in services.asked] == ["hush", "hush"]
    services.mode = "refuses"
    assert "hush" not in str((await ask(services.url, "Paris", weather_api_key="hush")).value)


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("hangs", "did not answer in time"),
        ("drips", "did not answer in time"),
        ("refuses", "status 400"),
        ("babbles", "no JSON"),
        ("floods", "cannot be reached"),
    ],
)
async def test_a_bad_service_is_a_clear_error_in_time(
    services: PublicServices, monkeypatch: pytest.MonkeyPatch, mode: str, told: str
) -> None:
    monkeypatch.setattr(loading, "SOURCE_SECONDS", 0.5 if told == "did not answer in time" else PATIENCE)
    services.mode = mode
    result = await ask(services.url, "Paris")
    assert result.failed
    assert "the weather is not available now" in str(result.value)
    assert told in str(result.value)


async def test_offline_is_a_clear_error(services: PublicServices) -> None:
    result = await ask(f"http://{LOOPBACK}:{free_port()}", "Paris")
    assert result.failed
    assert "cannot be reached" in str(result.value)


async def test_a_call_ends_within_its_limit_however_slow_each_request_is(services: PublicServices) -> None:
    services.mode = "hangs"
    result = await ask(services.url, "Paris", tool_seconds=0.3)
    assert result.failed
    assert "0.3 s" in str(result.value)


async def test_switched_off_it_is_not_offered() -> None:
    async with open_tools(load(weather="off")) as tools:
        assert "get_weather" not in {offer.name for offer in tools.offers}
        assert (await tools.call("get_weather", {"city": "Paris"}, Caller("s"))).failed


def test_the_limits_leave_room_for_two_requests() -> None:
    assert timedelta(seconds=2 * USUAL) < timedelta(seconds=10)
