"""Parses the lines of a server's JSON log."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the server's log."""

    level: str
    message: str
    fields: Mapping[str, JsonValue]

    def number(self, name: str) -> float:
        value = self.fields.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    def text(self, name: str) -> str:
        return str(self.fields.get(name, ""))

    def private(self, name: str) -> JsonValue:
        """Return a field of the group `pii`, which the log has if FLEET_LOG_PII is set."""
        group = self.fields.get("pii")
        return group.get(name) if isinstance(group, dict) else None


def parse_log(raw: str) -> LogLine | None:
    """Return a line of the server's log; None for other text, such as the output of a library."""
    try:
        found: JsonValue = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("message"), str):
        return None
    rest = {name: value for name, value in found.items() if name not in ("level", "message")}
    return LogLine(str(found.get("level", "")), str(found["message"]), rest)
