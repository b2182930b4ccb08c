"""Publisher against a real Mosquitto that goes away."""

import asyncio

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.net.mqtt.url import MqttAddress
from tests.support.link_session import PATIENCE, until, who
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_raw import RawClient
from tests.support.tcp_relay import TcpRelay

ORDER = b"tools/call"


async def test_publisher_survives_a_broker_restart(own_plain_broker: MosquittoServer) -> None:
    publisher = Publisher(MqttAddress("127.0.0.1", own_plain_broker.port), who("fleet-edge-1"))
    assert not publisher.publish("t/down", b"before")
    task = asyncio.create_task(publisher.run())
    try:
        await until(lambda: publisher.connected)
        assert publisher.publish("t/down", b"works")
        own_plain_broker.kill()
        await until(lambda: not publisher.connected)
        assert not publisher.publish("t/down", b"lost")
        assert publisher.dropped == 2
        own_plain_broker.start()
        await until(lambda: publisher.connected)
        device = await RawClient.open(own_plain_broker.port)
        await device.connect("")
        await device.subscribe("t/down")
        assert publisher.publish("t/down", b"after")
        assert (await device.message()).payload == b"after"
        await device.discard()
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE)


async def test_what_was_published_before_a_loss_is_never_sent_again(relay: TcpRelay) -> None:
    publisher = Publisher(MqttAddress("127.0.0.1", relay.port), who("fleet-edge-2"))
    task = asyncio.create_task(publisher.run())
    try:
        await until(lambda: publisher.connected)
        relay.freeze()
        assert publisher.publish("t/down", ORDER)
        await until(lambda: ORDER in relay.sent[0])
        relay.cut()
        await until(lambda: not publisher.connected)
        await until(lambda: publisher.connected)
        assert publisher.publish("t/down", b"new")
        await until(lambda: b"new" in relay.sent[1])
        assert sum(bytes(sent).count(ORDER) for sent in relay.sent) == 1
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE)
