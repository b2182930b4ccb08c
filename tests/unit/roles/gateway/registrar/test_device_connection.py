import json
from typing import Any, cast

import pytest

from fleet.adapters.net.mqtt.session import MqttSession
from fleet.roles.gateway.client import Client
from fleet.roles.gateway.registrar.device_connection import DeviceConnection, without_login

LOGIN = {"username": "device.k", "password": "secret"}


def test_the_password_is_left_out_and_nothing_else() -> None:
    frame = {"jsonrpc": "2.0", "method": "mcp/registerTools", "id": 1, "params": {"tools": [{"name": "auth"}]}}
    with_login: dict[str, Any] = {**frame, "params": {**frame["params"], "auth": LOGIN}}  # type: ignore[dict-item] - a mapping
    for text in (json.dumps(with_login), json.dumps(with_login).replace('"auth": {', '"\\u0061uth": {')):
        assert json.loads(without_login(text.encode())) == frame


@pytest.mark.parametrize("frame", [b"", b"{auth", b'"auth"', b'["auth"]', b'{"auth":1,"params":"auth"}', b"\\u" * 9])
def test_frames_without_one_stay_as_they_are(frame: bytes) -> None:
    assert without_login(frame) == frame


class Session:
    """A connection that keeps what is published."""

    def __init__(self) -> None:
        self.published: list[tuple[str, bytes]] = []

    def publish(self, topic: str, payload: bytes) -> None:
        self.published.append((topic, payload))


async def test_what_is_passed_on_to_the_broker_holds_no_password() -> None:
    session = Session()
    opened = cast("MqttSession", session)
    line = DeviceConnection(cast("Client", None), "aa:bb:cc:dd:ee:ff", lambda _: opened, cast("Any", None))
    await line.receive(json.dumps({"jsonrpc": "2.0", "params": {"auth": LOGIN, "tools": []}}).encode())
    [(topic, payload)] = session.published
    assert topic.endswith("/aa:bb:cc:dd:ee:ff")
    assert json.loads(payload) == {"jsonrpc": "2.0", "params": {"tools": []}}
