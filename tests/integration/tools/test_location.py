"""Where clients are, from settings and from a real HTTP service."""

import asyncio
from typing import Any

import pytest

from fleet.adapters.tools import load as loading
from fleet.adapters.tools.load import open_tools
from fleet.core.server_tools import Caller
from fleet.ground.settings import load
from tests.support.public_services import PublicServices

PUBLIC = "93.184.216.34"


async def ask(address: str, **settings: Any) -> Any:
    async with open_tools(load(tool_seconds=240.0, **settings)) as tools, asyncio.timeout(240):
        return await tools.call("get_location", {}, Caller("s", address))


async def test_the_place_of_the_settings_is_told() -> None:
    result = await ask("192.168.1.7", location="上海，中国")
    assert result.value == {"known": True, "source": "settings", "city": "上海", "country": "中国"}


@pytest.mark.parametrize("address", ["", PUBLIC, "10.0.0.1"])
async def test_what_nobody_knows_is_not_guessed(address: str) -> None:
    result = await ask(address)
    assert not result.failed
    assert result.value["known"] is False


async def test_a_service_that_is_named_is_asked_about_public_addresses(services: PublicServices) -> None:
    result = await ask(PUBLIC, location="Shanghai", location_url=f"{services.url}/where/{{ip}}")
    assert result.value == {
        "known": True,
        "source": "address",
        "city": "Berlin",
        "region": "Berlin",
        "country": "Germany",
        "latitude": 52.5,
        "longitude": 13.4,
        "timezone": "Europe/Berlin",
    }


@pytest.mark.parametrize("address", ["192.168.1.7", "::1", "fe80::1", "", "unix"])
async def test_nobody_is_asked_about_private_addresses(services: PublicServices, address: str) -> None:
    result = await ask(address, location="Shanghai", location_url=f"{services.url}/where/{{ip}}")
    assert result.value["city"] == "Shanghai"
    assert services.asked == []


async def test_a_service_that_does_not_know_or_fails_leads_to_no_guess(
    services: PublicServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{services.url}/where/{{ip}}"
    assert (await ask("8.8.8.8", location="Shanghai", location_url=url)).value["known"] is False
    monkeypatch.setattr(loading, "SOURCE_SECONDS", 0.5)
    services.mode = "hangs"
    failure = await ask(PUBLIC, location="Shanghai", location_url=url)
    assert failure.failed
    assert "did not answer in time" in failure.value
