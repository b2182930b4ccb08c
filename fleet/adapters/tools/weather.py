"""The weather of a place on a day: the port, and the tool."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Protocol

from pydantic import JsonValue

from fleet.adapters.tools import days
from fleet.adapters.tools.tool import built_in, failed, text_of
from fleet.core.server_tools import Caller, ServerResult, ServerTool
from fleet.ground.errors import ProviderError

_LONGEST = 80
"""Characters of a place or a day."""


@dataclass(frozen=True, slots=True)
class DayForecast:
    """The weather of one day in °C, percent and km/h; unknown values are None.

    For today, `temperature`, `humidity` and `wind_speed` are present values; for other days they are values of the day.
    """

    city: str
    region: str
    country: str
    date: str
    timezone: str
    condition: str | None = None
    temperature: float | None = None
    apparent_temperature: float | None = None
    temperature_max: float | None = None
    temperature_min: float | None = None
    humidity: float | None = None
    precipitation_probability: float | None = None
    wind_speed: float | None = None


@dataclass(frozen=True, slots=True)
class NoForecast:
    """There is no forecast for this place or day; `reason` is for the model."""

    reason: str


class Weather(Protocol):
    """A weather service."""

    async def forecast(self, city: str, day: str) -> DayForecast | NoForecast:
        """Return the weather of a place.

        Args:
            city: Its name in any language, perhaps with a region or country after a comma.
            day: In a form of `fleet.adapters.tools.days`; empty for today.

        Raises:
            ProviderError: The service cannot be reached, did not answer in time, or refused.
        """


def weather_tool(weather: Weather, place_of: Callable[[Caller], Awaitable[str]]) -> ServerTool:
    """Return the tool.

    Args:
        weather: The service.
        place_of: Returns the name of a caller's place; empty if it is unknown.
    """

    async def run(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        city, day = text_of(arguments, "city")[:_LONGEST], text_of(arguments, "date")[:_LONGEST]
        city = city or await place_of(caller)
        if not city:
            return failed("name a city: where the user is is not known")
        try:
            found = await weather.forecast(city, day)
        except ProviderError as error:
            return failed(f"the weather is not available now: {error}")
        if isinstance(found, NoForecast):
            return failed(found.reason)
        return ServerResult({key: value for key, value in asdict(found).items() if value not in (None, "")})

    return built_in(
        "get_weather",
        "Tell the weather of a city: now, or on a day from some weeks ago to two weeks ahead. Temperatures are in °C.",
        run,
        repeatable=True,
        city={"type": "string", "description": "Name of the city; empty for that of the user.", "required": True},
        date={"type": "string", "description": f"The day, today without it: {days.FORMS}."},
    )
