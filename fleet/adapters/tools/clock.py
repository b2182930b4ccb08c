"""The tool for the current time, at the user's place and elsewhere."""

import re
import tomllib
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from importlib.resources import files

from pydantic import JsonValue

from fleet.adapters.tools.tool import built_in, failed, text_of
from fleet.core.server_tools import Caller, ServerResult, ServerTool

_OFFSET = re.compile(r"(?:utc|gmt)?\s*([+\-−])\s*(\d{1,2})(?::?(\d{2}))?")
_SUFFIX = re.compile(r"(?<=..)(?:特别行政区|标准时间|时间|时区|市)$")
_TAIL = re.compile(r"\s+(?:local |standard |daylight )?(?:time|city)$")
_REGIONS = frozenset({"Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"})
_NO_CITIES = frozenset({"North", "South", "West"})
_FURTHEST = timedelta(hours=14)
_HOW = "use a name such as Asia/Shanghai, a large city such as Tokyo or 北京, or an offset such as +08:00"


class Zones:
    """Time zones by their usual names: IANA names, cities and countries in English and Chinese, and offsets."""

    def __init__(self) -> None:
        names = sorted(zoneinfo.available_timezones())
        self._names = {name.casefold(): name for name in names}
        self._cities = {city: name for name in names if (city := _city(name))} | _packaged()

    def find(self, text: str) -> tzinfo | None:
        """Return the zone that a text names; None if it names none or several."""
        words = " ".join(text.casefold().replace("_", " ").split())
        if found := _OFFSET.fullmatch(words):
            return _fixed(found)
        if name := self._names.get(words.replace(" ", "_")):
            return zoneinfo.ZoneInfo(name)
        first = re.split("[,，]", words)[0].strip()
        spellings = (words, first, _SUFFIX.sub("", first), _TAIL.sub("", first))
        name = next((self._cities[one] for one in spellings if one in self._cities), None)
        return zoneinfo.ZoneInfo(name) if name else None


def _city(name: str) -> str:
    """Return the city in a zone's name; empty if it has none."""
    region, _, city = name.partition("/")
    known = region in _REGIONS and "/" not in city and city not in _NO_CITIES
    return city.replace("_", " ").casefold() if known else ""


def _packaged() -> dict[str, str]:
    text = (files("fleet.adapters.tools") / "cities.toml").read_text(encoding="utf-8")
    zones: Mapping[str, list[str]] = tomllib.loads(text)
    return {city.casefold(): zone for zone, cities in zones.items() for city in cities}


def _fixed(found: re.Match[str]) -> tzinfo | None:
    offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    if offset > _FURTHEST or int(found[3] or 0) > 59:
        return None
    return timezone(offset if found[1] == "+" else -offset)


def clock_tool(zones: Zones, now: Callable[[], datetime]) -> ServerTool:
    """Return the tool.

    Args:
        zones: The time zones that the tool knows.
        now: Returns the present time, with a time zone.
    """

    async def run(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        wanted = text_of(arguments, "timezone")
        zone = zones.find(wanted) if wanted else timezone(timedelta(minutes=caller.timezone_offset))
        if zone is None:
            return failed(f"the time zone {wanted[:64]!r} is not known; {_HOW}")
        return ServerResult(_describe(now().astimezone(zone), zone))

    return built_in(
        "get_current_time",
        "Tell the date and the time, the user's own or that of another place.",
        run,
        repeatable=True,
        timezone={
            "type": "string",
            "description": "IANA name, large city or UTC offset; the time of the user without it.",
        },
    )


def _describe(at: datetime, zone: tzinfo) -> dict[str, JsonValue]:
    offset = at.strftime("%z")
    offset = f"{offset[:3]}:{offset[3:5]}"
    return {
        "datetime": at.isoformat(timespec="seconds"),
        "date": f"{at:%Y-%m-%d}",
        "time": f"{at:%H:%M:%S}",
        "weekday": f"{at:%A}",
        "timezone": zone.key if isinstance(zone, zoneinfo.ZoneInfo) else f"UTC{offset}",
        "utc_offset": offset,
    }
