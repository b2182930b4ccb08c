"""The location of a client, from the settings or from a service that looks up its address."""

import ipaddress
from dataclasses import asdict, dataclass

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from fleet.adapters.tools.json_source import JsonSource
from fleet.adapters.tools.tool import built_in, failed
from fleet.core.server_tools import Caller, ServerResult, ServerTool
from fleet.ground.errors import ProviderError

_ABOUT = "Tell where the user is, as far as it is known."


@dataclass(frozen=True, slots=True)
class Location:
    """A place; unknown fields are empty or None. `source` is where it comes from: `settings` or `address`."""

    source: str
    city: str = ""
    region: str = ""
    country: str = ""
    latitude: float | None = None
    longitude: float | None = None
    timezone: str = ""

    @property
    def name(self) -> str:
        """The city with region and country, which distinguish it from other cities of its name."""
        return ", ".join(part for part in (self.city, self.region, self.country) if part)


class _Answer(BaseModel):
    """The answer of a service; the usual services differ in the names of a few fields."""

    model_config = ConfigDict(coerce_numbers_to_str=True)
    city: str | None = None
    region: str | None = Field(None, validation_alias=AliasChoices("region", "regionName", "region_name"))
    country: str | None = Field(None, validation_alias=AliasChoices("country_name", "country"))
    latitude: float | None = Field(None, validation_alias=AliasChoices("latitude", "lat"))
    longitude: float | None = Field(None, validation_alias=AliasChoices("longitude", "lon", "lng"))
    timezone: str | dict[str, JsonValue] | None = Field(None, validation_alias=AliasChoices("timezone", "time_zone"))


class Locator:
    """Finds the location of clients.

    Args:
        place: The users' place, `City` or `City, Region, Country`; None if the operator has set none.
        url: URL of the service that looks up public addresses, with `{ip}` in it; None to use no service.
        source: Sends the requests to it.
    """

    def __init__(self, place: str | None, url: str | None, source: JsonSource) -> None:
        self._place = _parse(place) if place and place.strip() else None
        self._url = url
        self._source = source

    async def find(self, caller: Caller) -> Location | None:
        """Return the location of a caller; None if it is unknown.

        Raises:
            ProviderError: The service failed.
        """
        if self._url is None or not _is_public(caller.address):
            return self._place
        answer = await self._source.ask("the location service", self._url.replace("{ip}", caller.address))
        try:
            found = _Answer.model_validate(answer)
        except ValidationError:
            raise ProviderError("the location service gave an answer that cannot be read", retryable=False) from None
        if not found.city and not found.country:
            return None
        zone = found.timezone if isinstance(found.timezone, str) else ""
        return Location(
            "address",
            found.city or "",
            found.region or "",
            found.country or "",
            found.latitude,
            found.longitude,
            zone,
        )

    async def place_of(self, caller: Caller) -> str:
        """Return the name of a caller's place; empty if it is unknown."""
        try:
            location = await self.find(caller)
        except ProviderError:
            return ""
        return location.name if location and location.city else ""

    def tool(self) -> ServerTool:
        return built_in("get_location", _ABOUT, self._run, repeatable=True)

    async def _run(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        try:
            location = await self.find(caller)
        except ProviderError as error:
            return failed(f"where the user is is not known now: {error}")
        if location is None:
            return ServerResult({"known": False, "note": "Where the user is is not known; ask the user."})
        known = {key: value for key, value in asdict(location).items() if value not in (None, "")}
        return ServerResult({"known": True, **known})


def _parse(place: str) -> Location:
    city, *rest = (part.strip() for part in place.replace("，", ",").split(","))
    region = ", ".join(rest[:-1])
    return Location("settings", city, region, rest[-1] if rest else "")


def _is_public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False
