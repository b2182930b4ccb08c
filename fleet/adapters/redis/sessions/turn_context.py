"""The data of a device that a turn needs; `turn_context` in `functions.lua` reads them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.reports import read_report
from fleet.adapters.redis.devices.tools import decode_tools
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.core.ports import Message
from fleet.core.reports import SECONDS as REPORT_SECONDS
from fleet.core.reports import DeviceReport
from fleet.core.server_tools import Persona
from fleet.wire.mcp import ToolSpec

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


@dataclass(frozen=True, slots=True)
class Context:
    """The data of a device that a turn needs: tools, newest history (oldest first), reports, persona, time zone."""

    tools: tuple[ToolSpec, ...]
    history: tuple[Message, ...]
    reports: tuple[DeviceReport, ...]
    persona: Persona = field(default_factory=Persona)
    timezone: str = ""
    """Of the device: an IANA name or minutes east of UTC; the server's own without it."""
    facts: tuple[str, ...] = ()
    """What is known from earlier conversations."""
    agent: str = ""
    """Digest of its agent; empty for the settings alone."""


def context_keys(store: Store, mac: str) -> tuple[str, ...]:
    """Return the keys of a device's context."""
    keys = store.keys
    return (
        *(keys.tools(mac), keys.history(mac), keys.reports(mac), keys.persona(mac)),
        *(admission_key(store, mac), keys.memory(mac), keys.agents(keys.shard(mac))),
    )


def context_words(most: int) -> tuple[int, int, int]:
    """Return the arguments for a context; `most` says how much history, unless the agent does."""
    return most, REPORT_SECONDS * 1000, DEVICE_SECONDS


def read_context(answer: Sequence[str]) -> Context:
    """Return the context from the parts that Redis answered."""
    tools, count, language, character, timezone, facts, agent, *lines = answer
    fact, report = int(count), int(count) + int(facts)
    history, reports = lines[:fact], lines[report:]
    return Context(
        decode_tools(tools),
        tuple(_MESSAGE.validate_json(line) for line in history),
        tuple(read_report(line) for line in reports),
        Persona(language, character),
        timezone,
        tuple(lines[fact:report]),
        agent,
    )
