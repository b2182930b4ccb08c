"""Whole conversations: a stock device, real broker, real Redis, real recognition and voices, the demo model."""

import asyncio
from collections.abc import Iterator

import pytest

from fleet.wire.identity import CredentialKeys
from fleet.workbench.sim.records.turns import Turn
from tests.e2e.conversation import device_of, transcript_of
from tests.support.fleet_process import FleetProcess, fleet_up
from tests.support.mosquitto_server import MosquittoServer
from tests.support.recordings import recordings
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.conversation

EN = [recording.pcm() for recording in recordings("en")]
ZH = [recording.pcm() for recording in recordings("zh")]
VOLUME, TIME, LOUDER = 2, 3, 9


@pytest.fixture(scope="module")
def fleet(
    tmp_path_factory: pytest.TempPathFactory, broker: MosquittoServer, redis_server: RedisServer, keys: CredentialKeys
) -> Iterator[FleetProcess]:
    """A running fleet on Mosquitto with the plugin and Redis; `test_commands` has one on its embedded parts."""
    settings = {
        "FLEET_MQTT_URL": broker.url,
        "FLEET_MQTT_PUBLIC": f"{broker.host}:{broker.port}",
        "FLEET_REDIS_URL": redis_server.url,
        "FLEET_KEYS": ",".join(line.replace(" ", ":") for line in keys.as_file().splitlines()),
    }
    with fleet_up(tmp_path_factory.mktemp("fleet"), forked=True, **settings) as process:
        yield process


async def test_questions_and_commands_in_two_languages_at_the_same_time(fleet: FleetProcess) -> None:
    async with asyncio.TaskGroup() as group:
        english = group.create_task(talk_english(fleet))
        chinese = group.create_task(talk_chinese(fleet))
    # Listening costs this process so much that no device may live in it meanwhile.
    question, command, louder, volume = english.result()
    assert "time" in question.transcript.lower()
    assert "30" in (heard := await transcript_of(command)) or "thirty" in heard
    assert str(volume) in await transcript_of(louder)
    heard = await transcript_of(chinese.result())
    assert "30" in heard or "三十" in heard


async def talk_english(fleet: FleetProcess) -> tuple[Turn, Turn, Turn, int]:
    async with device_of(fleet) as device:
        device.board.volume = 70
        question = await device.say(EN[TIME])
        assert question.outcome == "answered"
        command = await device.say(EN[VOLUME])
        assert command.outcome == "answered"
        assert device.board.volume == 30
        louder = await device.say(EN[LOUDER])
        assert louder.outcome == "answered"
        assert device.board.volume > 30
    return question, command, louder, device.board.volume


async def talk_chinese(fleet: FleetProcess) -> Turn:
    async with device_of(fleet) as device:
        device.board.volume = 70
        question = await device.say(ZH[TIME])
        command = await device.say(ZH[VOLUME])
        assert (question.outcome, command.outcome) == ("answered", "answered")
        assert device.board.volume == 30
    return command


async def test_two_devices_do_not_hear_each_other(fleet: FleetProcess) -> None:
    async with device_of(fleet) as one, device_of(fleet) as other:
        other.board.volume = 70
        turn = await one.say(EN[VOLUME])
        assert turn.outcome == "answered"
        assert (one.board.volume, other.board.volume) == (30, 70)
        assert other.report.turns == []
