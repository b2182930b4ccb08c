import pytest

from fleet.wire.topics import down_topic, up_topic
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.bootstrap.ota import MqttAccess
from fleet.workbench.sim.bootstrap.request import ask, reply_topic
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.scripted_server import ScriptedServer

MAC = "02:00:00:00:00:01"


async def test_the_whole_answer_is_returned() -> None:
    async with ScriptedServer.running() as server:
        server.ota_answer["mqtt"]["subscribe_topic"] = "p2p/1"
        answer = await ask(server.ota_url, MAC, find_profile("P1"))
    assert answer == server.ota_answer
    headers, body = server.ota_requests[0]
    assert headers["device-id"] == MAC
    assert b'"mac_address": "02:00:00:00:00:01"' in body.replace(b'":"', b'": "')


async def test_an_answer_that_is_no_object_and_a_closed_port_are_failures() -> None:
    async with ScriptedServer.running() as server:
        server.ota_answer = []  # type: ignore[assignment]
        with pytest.raises(Failed, match="status 200, 2 bytes"):
            await ask(server.ota_url, MAC, find_profile("P1"))
    with pytest.raises(Failed, match=r"bootstrap: ."):
        await ask(server.ota_url, MAC, find_profile("P1"))


@pytest.mark.parametrize(
    ("told", "publish", "topic"),
    [
        ("p2p/1", up_topic(MAC), "p2p/1"),
        ("null", up_topic(MAC), down_topic(MAC)),
        ("", up_topic(MAC), down_topic(MAC)),
        ("null", "device-server", ""),
        ("", "", ""),
    ],
)
def test_the_topic_of_the_servers_messages_is_told_or_follows_from_a_known_plan(
    told: str, publish: str, topic: str
) -> None:
    access = MqttAccess("host:1884", MAC, "name", "word", publish, 30, told)
    assert reply_topic(access, MAC) == topic
