"""H7 and H10 of the device's contract: hellos that cannot be served are refused fast and in words."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fleet.roles.worker.ownership.shard import Shard
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from fleet.wire.messages import AlertCommand, DeviceCommand, GoodbyeCommand
from tests.integration.worker.scene import HELLO, Scene, scene, stand, work
from tests.support.mosquitto_server import MosquittoServer


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[type, float]:
    """When the worker last sent each kind of command; a device may hear them together from a busy broker."""
    times: dict[type, float] = {}
    publish = Shard.publish

    def noted(shard: Shard, mac: str, command: DeviceCommand, dialect: str) -> None:
        times[type(command)] = asyncio.get_running_loop().time()
        publish(shard, mac, command, dialect)

    monkeypatch.setattr(Shard, "publish", noted)
    return times


async def refusal(stage: Scene, sent: dict[type, float]) -> dict[str, Any]:
    """Say hello; return the alert that follows hello and goodbye as a refusal must."""
    await stage.device.say(HELLO)
    welcome = await stage.device.hear_type("hello")
    assert len(bytes.fromhex(welcome["udp"]["key"])) == len(bytes.fromhex(welcome["udp"]["nonce"])) == 16
    goodbye = await stage.device.hear_type("goodbye")
    alert = await stage.device.hear_type("alert")
    assert goodbye["session_id"] == welcome["session_id"]
    assert sent[AlertCommand] - sent[GoodbyeCommand] >= 0.3
    assert all(isinstance(alert[name], str) and alert[name] for name in ("status", "message", "emotion"))
    return alert


@pytest.mark.parametrize("state", [{"draining": True}, {"load": 20_000}, {"host": ""}])
async def test_without_an_edge_a_hello_is_refused_in_words(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, state: dict[str, Any], sent: dict[type, float]
) -> None:
    async with stand(redis_url, broker, keys) as one:
        await one.edge.announce(**state)
        async with work(one.resources, broker):
            await one.reconnect()
            assert (await refusal(one, sent))["message"] == "The server cannot take a conversation now."


async def test_a_device_that_is_not_admitted_is_refused_and_its_session_ended(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, sent: dict[type, float]
) -> None:
    async with stand(redis_url, broker, keys) as one:
        async with work(one.resources, broker):
            await one.reconnect()
            session = await one.greet()
        refused = f"02:00:00:00:00:01,{one.device.mac}"
        settings = replace(one.resources.settings, refused_devices=refused, languages="zh,en")
        strict = type(one.resources).of(settings, keys, one.llm, one.resources.store)
        async with work(strict, broker):
            assert (await refusal(one, sent))["message"] == "此设备未获准使用本服务器。"
            assert (await one.edge.until(edge_messages.CloseSessionCommand)).session == session
            assert await one.resources.sessions.read(one.device.mac) is None
            other = await one.another_device()
            await other.say(HELLO)
            welcome = await other.hear_type("hello")
            assert (await one.edge.next(edge_messages.OpenSessionCommand)).session == welcome["session_id"]
            await other.close()


async def test_an_edge_that_is_full_is_passed_over(
    redis_url: str, own_broker: MosquittoServer, keys: CredentialKeys
) -> None:
    # A broker of its own: what another test's worker left unacknowledged would take the only place.
    async with scene(redis_url, own_broker, keys, edge_sessions=1) as one:
        await one.greet()
        # What the worker counted itself holds only until it reads the list again, which it may have done by now.
        await one.edge.announce(load=1)
        other = await one.another_device()
        await other.say(HELLO)
        await other.hear_type("goodbye")
        await other.close()


async def test_an_alert_is_in_the_language_that_the_device_reports(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, sent: dict[type, float]
) -> None:
    async with stand(redis_url, broker, keys) as one:
        await one.edge.announce(draining=True)
        async with work(one.resources, broker):
            await one.reconnect()
            assert (await refusal(one, sent))["status"] == "Error"
            await one.resources.devices.describe(one.device.mac, {"lang": "zh-CN"})
            alert = await refusal(one, sent)
    assert (alert["status"], alert["message"]) == ("错误", "服务器现在无法接受对话。")


async def test_an_edge_hears_what_the_device_reported_about_itself(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with scene(redis_url, broker, keys) as one:
        await one.device.say(HELLO)
        opened = await one.edge.until(edge_messages.OpenSessionCommand)
        assert (opened.reported_language, opened.firmware, opened.board) == ("", "", "")
        await one.resources.devices.describe(one.device.mac, {"lang": "zh-CN", "fw": "2.2.6", "board": "b"})
        await one.device.say(HELLO)
        opened = await one.edge.until(edge_messages.OpenSessionCommand)
        assert (opened.reported_language, opened.firmware, opened.board) == ("zh-CN", "2.2.6", "b")
