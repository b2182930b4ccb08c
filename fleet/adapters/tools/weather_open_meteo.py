"""The weather from open-meteo.com, which needs no key, or from a server with the same API.

Source: the API's documentation, https://open-meteo.com/en/docs and …/en/docs/geocoding-api.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, Field, JsonValue, ValidationError

from fleet.adapters.tools.days import FORMS, find_day
from fleet.adapters.tools.json_source import JsonSource, Query
from fleet.adapters.tools.weather import DayForecast, NoForecast
from fleet.ground.errors import ProviderError

DAYS_AGO = 60
DAYS_AHEAD = 15
"""The range of days; the service has forecasts of the last three months."""

_HAN = re.compile(r"[㐀-䶿一-鿿]")
_SUFFIX = re.compile(r"(?<=..)(?:特别行政区|市区|市|省|县|区)$")
_CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m"
_DAILY = (
    "weather_code,temperature_2m_max,temperature_2m_min,temperature_2m_mean,relative_humidity_2m_mean,"
    "precipitation_probability_max,wind_speed_10m_max"
)


class _Place(BaseModel):
    name: str
    latitude: float
    longitude: float
    timezone: str = "UTC"
    country: str = ""
    country_code: str = ""
    admin1: str = ""
    admin2: str = ""

    @property
    def zone(self) -> tzinfo:
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError):
            return UTC


class _Places(BaseModel):
    results: list[_Place] = Field(default_factory=list)


class _Current(BaseModel):
    temperature_2m: float | None = None
    apparent_temperature: float | None = None
    relative_humidity_2m: float | None = None
    weather_code: int | None = None
    wind_speed_10m: float | None = None


class _Daily(BaseModel):
    weather_code: list[int | None] = Field(default_factory=list)
    temperature_2m_max: list[float | None] = Field(default_factory=list)
    temperature_2m_min: list[float | None] = Field(default_factory=list)
    temperature_2m_mean: list[float | None] = Field(default_factory=list)
    relative_humidity_2m_mean: list[float | None] = Field(default_factory=list)
    precipitation_probability_max: list[float | None] = Field(default_factory=list)
    wind_speed_10m_max: list[float | None] = Field(default_factory=list)


class _Forecast(BaseModel):
    current: _Current | None = None
    daily: _Daily = _Daily()


_Answer = TypeVar("_Answer", bound=BaseModel)
_Value = TypeVar("_Value")


class OpenMeteo:
    """See `fleet.adapters.tools.weather.Weather`.

    Args:
        source: Sends the requests.
        forecasts: URL of the forecast server.
        places: URL of the geocoding server.
        key: API key for both servers; None if they need none.
        now: Returns the present time, with a time zone.
    """

    def __init__(
        self, source: JsonSource, forecasts: str, places: str, key: str | None, now: Callable[[], datetime]
    ) -> None:
        self._source = source
        self._forecasts = f"{forecasts}/v1/forecast"
        self._places = f"{places}/v1/search"
        self._key: dict[str, str] = {"apikey": key} if key else {}
        self._now = now

    async def forecast(self, city: str, day: str) -> DayForecast | NoForecast:
        place = await self._find(city)
        if place is None:
            return NoForecast(f"there is no city {city!r} that the weather service knows; try its English name")
        today = self._now().astimezone(place.zone).date()
        wanted = find_day(day, today)
        if wanted is None:
            return NoForecast(f"the day {day!r} is not understood; give {FORMS}")
        first, last = today - timedelta(days=DAYS_AGO), today + timedelta(days=DAYS_AHEAD)
        if not first <= wanted <= last:
            return NoForecast(f"the weather of {wanted} is not known, only that from {first} to {last}")
        return _report(place, wanted, await self._look(place, wanted, now=wanted == today))

    async def _find(self, city: str) -> _Place | None:
        name, *hints = (part.strip() for part in re.split("[,，]", city))
        for spelling in dict.fromkeys((name, _SUFFIX.sub("", name))):
            language = "zh" if _HAN.search(spelling) else "en"
            query: Query = {"name": spelling, "count": 10, "language": language, "format": "json"}
            found = await self._ask("the place finder", self._places, query, _Places)
            if found.results:
                return _choose(found.results, hints)
        return None

    async def _look(self, place: _Place, day: date, *, now: bool) -> _Forecast:
        where: Query = {"latitude": place.latitude, "longitude": place.longitude, "timezone": place.timezone}
        when = {"daily": _DAILY, "start_date": f"{day}", "end_date": f"{day}", **({"current": _CURRENT} if now else {})}
        return await self._ask("the weather service", self._forecasts, {**where, **when}, _Forecast)

    async def _ask(self, what: str, url: str, query: Query, kind: type[_Answer]) -> _Answer:
        answer: JsonValue = await self._source.ask(what, url, {**query, **self._key})
        try:
            return kind.model_validate(answer)
        except ValidationError:
            raise ProviderError(f"{what} gave an answer that cannot be read", retryable=False) from None


def _choose(places: Sequence[_Place], hints: Sequence[str]) -> _Place:
    """Return the place that matches most words after the comma; among equals the first, which is the best known."""

    def fits(place: _Place) -> int:
        about = {part.casefold() for part in (place.country, place.country_code, place.admin1, place.admin2)}
        return sum(hint.casefold() in about for hint in hints)

    return max(places, key=fits)


def _report(place: _Place, day: date, forecast: _Forecast) -> DayForecast:
    now, daily = forecast.current, forecast.daily
    code = _first(daily.weather_code) if now is None or now.weather_code is None else now.weather_code
    figures: dict[str, Any] = {
        "temperature": now.temperature_2m if now else _first(daily.temperature_2m_mean),
        "apparent_temperature": now.apparent_temperature if now else None,
        "humidity": now.relative_humidity_2m if now else _first(daily.relative_humidity_2m_mean),
        "wind_speed": now.wind_speed_10m if now else _first(daily.wind_speed_10m_max),
    }
    return DayForecast(
        city=place.name,
        region=place.admin1,
        country=place.country,
        date=f"{day}",
        timezone=place.timezone,
        condition=None if code is None else _conditions().get(f"{code}", f"weather code {code}"),
        temperature_max=_first(daily.temperature_2m_max),
        temperature_min=_first(daily.temperature_2m_min),
        precipitation_probability=_first(daily.precipitation_probability_max),
        **figures,
    )


@cache
def _conditions() -> dict[str, str]:
    """Return the descriptions of the WMO weather codes."""
    return tomllib.loads((files("fleet.adapters.tools") / "weather_codes.toml").read_text(encoding="utf-8"))


def _first(values: Sequence[_Value | None]) -> _Value | None:
    return values[0] if values else None
