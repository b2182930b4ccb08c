"""What a bootstrap answer must hold, and what would hang, crash or lock out a device (contract 1.2)."""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from fleet.workbench.sim.messages.message import JsonObject, member, number
from fleet.workbench.sim.records.audit import Finding

LARGEST = 7000
LONGEST_KEY = 15
LONGEST_STRING = 4000
STRINGS = ("endpoint", "client_id", "username", "password", "publish_topic")

_ENDPOINT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?")
_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9})*")


def check_response(status: int, headers: dict[str, str], body: bytes) -> Iterator[Finding]:
    """Yield what is wrong with an answer before its content; `headers` have lower-case names."""
    if status != 200:
        yield "ota-status", f"status {status}"
    if len(body) > LARGEST:
        yield "ota-size", f"{len(body)} bytes"
    framed = "content-length" in headers or "chunked" in headers.get("transfer-encoding", "")
    if not framed and headers.get("connection", "").lower() != "close":
        yield "ota-framing", "neither length nor chunks nor close"


def check_answer(answer: JsonObject, running: str) -> Iterator[Finding]:
    """Yield what is wrong with an answer's content; `running` is the firmware's version."""
    if "mqtt" in answer or "activation" not in answer:
        yield from _check_mqtt(answer.get("mqtt"))
    for section in ("mqtt", "websocket"):
        yield from _check_stored(section, member(answer, section))
    if "server_time" in answer:
        time = member(answer, "server_time")
        if any(number(time.get(name)) is None for name in ("timestamp", "timezone_offset")):
            yield "ota-time", repr(answer["server_time"])
    yield from _check_firmware(member(answer, "firmware"), running)


def _check_mqtt(section: JsonValue) -> Iterator[Finding]:
    if not isinstance(section, dict):
        yield "ota-mqtt", "no mqtt object"
        return
    for name in STRINGS:
        if not isinstance(section.get(name), str) or not section[name]:
            yield "ota-mqtt", f"{name} {section.get(name)!r}" if name != "password" else "password is no string"
    if number(section.get("keepalive")) is None:
        yield "ota-mqtt", f"keepalive {section.get('keepalive')!r}"
    endpoint = section.get("endpoint")
    if isinstance(endpoint, str) and not _ENDPOINT.fullmatch(endpoint):
        yield "ota-endpoint", endpoint


def _check_stored(section: str, values: JsonObject) -> Iterator[Finding]:
    for name, value in values.items():
        if len(name) > LONGEST_KEY:
            yield "ota-keys", f"{section}.{name}"
        if isinstance(value, str) and len(value.encode()) >= LONGEST_STRING:
            yield "ota-keys", f"{section}.{name} has {len(value.encode())} bytes"


def _check_firmware(firmware: JsonObject, running: str) -> Iterator[Finding]:
    version, url = firmware.get("version"), firmware.get("url")
    if number(firmware.get("force")) == 1:
        yield "ota-firmware", "force is on"
    if not isinstance(version, str) or not isinstance(url, str) or not version:
        return
    if not _VERSION.fullmatch(version):
        yield "ota-firmware", f"version {version!r} is not numbers and dots"
    elif _numbers(version) > _numbers(running) and not url:
        yield "ota-firmware", f"version {version} without a url"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
