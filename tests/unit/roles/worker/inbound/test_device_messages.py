import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from fleet.core.rates import Rate
from fleet.core.wake_words import LONGEST_QUESTION
from fleet.ground.errors import Fenced
from fleet.ground.loop_budget import FRAME_BYTES
from fleet.ground.metrics import broker as metrics
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.inbound import device_messages
from fleet.roles.worker.inbound.device_messages import ABSENCE_SECONDS, DeviceDispatcher
from fleet.roles.worker.sessions.discovery import Discovery, new_request_id
from fleet.roles.worker.sessions.edge_directory import GRACE_SECONDS
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.roles.worker.sessions.registration import Registrations
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire import dialects
from fleet.wire.messages import DeviceEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

HELLO = {"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": True}}


class Frames:
    """A dispatcher, and the frames of one device for it."""

    def __init__(self, stage: WorkerStage) -> None:
        resources, counts = stage.resources, stage.counts
        self.stage = stage
        calls = DeviceCalls(resources.calls, resources.reports, Rate(1, 5), counts)
        discovery = Discovery(resources, counts)
        opener = SessionOpener(resources, stage.directory, counts)
        self.turns = WorkerTurns(resources, calls, discovery, counts)
        registrations = Registrations(resources, discovery, counts)
        self.dispatcher = DeviceDispatcher(resources, opener, self.turns, calls, discovery, registrations)

    async def say(self, message: dict[str, Any] | bytes, kind: str = "up") -> None:
        payload = message if isinstance(message, bytes) else json.dumps(message).encode()
        expect = self.dispatcher.presences.expect
        received = expect(MAC, payload, asyncio.Future()) if kind == "presence" else payload
        await self.dispatcher.receive(self.stage.shard, kind, MAC, received)

    async def appear(self, *, online: bool, epoch: int, **more: Any) -> None:
        await self.say({"online": online, "epoch": epoch, **more}, "presence")

    def kinds(self) -> list[str]:
        return [str(message["type"]) for message in self.stage.sent()]

    def to_edge(self) -> list[str]:
        return [command.kind for command in self.stage.edge_commands()]


@pytest.fixture
def frames(stage: WorkerStage) -> Frames:
    return Frames(stage)


async def test_a_hello_opens_a_session_and_asks_for_the_tools(frames: Frames) -> None:
    await frames.say(HELLO)
    await asyncio.sleep(0)
    await elapse(0.1)
    assert frames.kinds() == ["hello", "mcp"] and frames.to_edge() == ["session_opened"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"type": "listen", "state": "start", "mode": "auto"}, "listening_started"),
        ({"type": "listen", "state": "stop"}, "listening_stopped"),
        ({"type": "listen", "state": "detect", "text": "hey"}, "wake_word_heard"),
        ({"type": "abort"}, "speech_aborted"),
    ],
)
async def test_what_the_edge_must_know_is_forwarded(frames: Frames, message: dict[str, Any], kind: str) -> None:
    await frames.stage.open("s1")
    await frames.say({"session_id": "s1", **message})
    assert frames.to_edge() == [kind] and frames.kinds() == []


@pytest.mark.parametrize("message", [{"type": "abort"}, {"type": "listen", "state": "detect"}])
async def test_a_long_text_takes_little_room_in_the_inbox_of_an_edge(frames: Frames, message: dict[str, Any]) -> None:
    await frames.stage.open("s1")
    await frames.say({"session_id": "s1", **message, "reason": "x" * 100_000, "text": "x" * 100_000})
    [command] = frames.stage.edge_commands()
    assert len(msgspec.json.encode(command)) < LONGEST_QUESTION + 200


def count_round_trips(frames: Frames) -> list[int]:
    """Count the commands to Redis from now on that are sent together."""
    connection, trips, ask = frames.stage.connection, list[int](), frames.stage.connection.ask

    async def count(commands: Sequence[Sequence[Any]]) -> list[Any]:
        trips.append(len(commands))
        return await ask(commands)

    connection.ask = count  # type: ignore[method-assign]
    return trips


@pytest.mark.parametrize(
    "message", [{"type": "abort"}, {"type": "listen", "state": "stop"}, {"type": "goodbye"}], ids=lambda it: it["type"]
)
async def test_what_the_edge_must_know_takes_one_round_trip(frames: Frames, message: dict[str, Any]) -> None:
    await frames.stage.open("s1")
    trips = count_round_trips(frames)
    await frames.say({"session_id": "s1", **message})
    assert (trips, len(frames.to_edge())) == ([1], 1)


async def test_a_device_that_returns_into_its_session_takes_two_round_trips(frames: Frames) -> None:
    await frames.stage.open("s1")
    trips = count_round_trips(frames)
    await frames.appear(online=True, epoch=3)
    assert (trips, frames.to_edge()) == ([1, 1], ["device_returned"])


class RunningTurn:
    """A turn that runs until it is cancelled."""

    def __init__(self, frames: Frames, session: str) -> None:
        self.utterance = SimpleNamespace(session=session, turn="t1")
        self.cancelled, self.task = False, self
        self.forwarded: list[str] | None = None
        """What the edge had been sent when the turn was cancelled."""
        self._frames = frames
        frames.turns._running[MAC] = cast("Any", self)

    def cancel(self) -> bool:
        self.forwarded = self._frames.to_edge()
        return True


@pytest.mark.parametrize("session", ["s1", ""])
async def test_an_abort_ends_the_turn_before_the_edge_hears_of_it(frames: Frames, session: str) -> None:
    await frames.stage.open("s1")
    turn = RunningTurn(frames, session)
    await frames.say({"session_id": "s1", "type": "abort"})
    assert (turn.forwarded, frames.to_edge()) == ([], ["speech_aborted"])


@pytest.mark.parametrize("session", ["s2", ""])
async def test_an_abort_of_a_session_that_is_over_ends_no_turn_of_another(frames: Frames, session: str) -> None:
    await frames.stage.open("s2")
    turn = RunningTurn(frames, session)
    await frames.say({"session_id": "s1", "type": "abort"})
    assert (turn.forwarded, frames.to_edge(), frames.kinds()) == (None, [], ["tts", "goodbye"])


async def test_a_worker_that_has_lost_the_shard_forwards_nothing(frames: Frames) -> None:
    await frames.stage.open("s1")
    stage, listen = frames.stage, {"session_id": "s1", "type": "listen", "state": "start", "mode": "auto"}
    stage.redis.run("HSET", stage.resources.store.keys.own(0), "f", "of another worker")
    with pytest.raises(Fenced):
        await frames.say(listen)
    stage.shard.lease.end()
    with pytest.raises(Fenced):
        await frames.say(listen)
    assert frames.to_edge() == []


async def test_a_message_of_a_session_that_is_over_gets_a_goodbye(frames: Frames) -> None:
    await frames.stage.open("s2")
    await frames.say({"session_id": "s1", "type": "listen", "state": "start", "mode": "auto"})
    assert (frames.kinds(), frames.to_edge()) == (["goodbye"], [])
    await frames.say({"session_id": "s1", "type": "abort"})
    assert frames.kinds() == ["goodbye", "tts", "goodbye"], "only tts stop ends the speaking state"


async def test_a_message_for_a_dead_edge_ends_the_session(frames: Frames) -> None:
    await frames.stage.open("s1", "edge-0")
    for _ in range(5):
        await elapse(GRACE_SECONDS / 2)
        frames.stage.directory.update([], asyncio.get_running_loop().time())
    await frames.say({"session_id": "s1", "type": "listen", "state": "start", "mode": "auto"})
    assert frames.kinds() == ["tts", "goodbye"]
    assert await frames.stage.resources.sessions.read(MAC) is None


async def test_a_goodbye_ends_the_wait_for_a_pause_in_the_session(frames: Frames) -> None:
    await frames.stage.open("s1")
    pauses = frames.turns.spoken.pauses
    pauses.begin(MAC, "t1")
    began = asyncio.get_running_loop().time()
    waiting = asyncio.ensure_future(pauses.wait(MAC))
    await frames.say({"session_id": "s1", "type": "goodbye"})
    await waiting
    assert asyncio.get_running_loop().time() - began < 1


async def test_a_goodbye_ends_the_session_on_its_edge(frames: Frames) -> None:
    await frames.stage.open("s1")
    await frames.say({"session_id": "s1", "type": "goodbye"})
    assert (frames.kinds(), frames.to_edge()) == ([], ["session_closed"])


@pytest.mark.parametrize("frame", [b"", b"{", b"[1]", b'{"type": 7}', b"\xff\xfe", b'{"type": "listen", "state": "x"}'])
async def test_what_is_malformed_changes_nothing(frames: Frames, frame: bytes) -> None:
    await frames.stage.open("s1")
    before = metrics.malformed.read()
    await frames.say(frame)
    await frames.say(frame, "presence")
    await frames.say(frame, "boot")
    assert (frames.kinds(), frames.to_edge()) == ([], [])
    assert metrics.malformed.read() - before == {("device",): 1, ("presence",): 1, ("boot",): 1}


async def test_a_notification_becomes_a_report_for_the_next_turn(frames: Frames) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/state_changed", "params": {"lamp": "on"}}
    await frames.say({"session_id": "", "type": "mcp", "payload": note})
    [report] = (await frames.stage.resources.conversations.context(MAC, 9)).reports
    assert "lamp" in report.text


async def test_an_answer_to_the_worker_before_makes_this_one_ask_for_the_tools(frames: Frames) -> None:
    answer = {"jsonrpc": "2.0", "id": int(new_request_id()), "result": {}}
    await frames.say({"session_id": "", "type": "mcp", "payload": answer})
    await elapse(0.1)
    assert [one["payload"]["method"] for one in frames.stage.sent()] == ["initialize"]


async def test_a_device_that_stays_away_loses_its_session_and_one_that_returns_does_not(frames: Frames) -> None:
    await frames.stage.open("s1")
    await frames.appear(online=False, epoch=2)
    await elapse(ABSENCE_SECONDS - 1)
    await frames.appear(online=True, epoch=3)
    await elapse(ABSENCE_SECONDS)
    assert frames.to_edge() == ["device_returned"]
    await frames.appear(online=False, epoch=4)
    await elapse(ABSENCE_SECONDS + 1)
    assert frames.to_edge() == ["device_returned", "session_closed"]
    await frames.appear(online=True, epoch=1)
    assert not (await frames.stage.resources.devices.read(MAC)).online, "it is older"


async def test_a_device_whose_keep_alive_expired_loses_its_session_at_once(frames: Frames) -> None:
    await frames.stage.open("s1")
    await frames.appear(online=False, epoch=2, expired=True)
    assert frames.to_edge() == ["session_closed"]


async def test_a_device_that_returns_after_its_session_gets_its_goodbye_again(frames: Frames) -> None:
    await frames.stage.open("s1")
    await frames.appear(online=False, epoch=2, expired=True)
    await frames.appear(online=True, epoch=3)
    await elapse(5)
    assert "goodbye" in frames.kinds()


async def test_devices_that_the_broker_lost_in_its_restart_are_offline(frames: Frames) -> None:
    await frames.stage.open("s1")
    await frames.say({"epoch": 5}, "boot")
    assert not (await frames.stage.resources.devices.read(MAC)).online
    await elapse(ABSENCE_SECONDS + 1)
    assert frames.to_edge() == ["session_closed"]


async def test_large_frames_of_one_device_delay_another_by_one_frame(
    frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive, read = dialects.receive, []

    def noted(frame: bytes) -> tuple[str, DeviceEvent]:
        read.append(len(frame))
        return receive(frame)

    monkeypatch.setattr(device_messages.dialects, "receive", noted)
    large, small = (json.dumps({"type": "abort", "reason": "x" * size}).encode() for size in (FRAME_BYTES, 1))
    async with asyncio.TaskGroup() as group:
        for mac, frame in [(MAC, large)] * 5 + [("02:00:00:00:00:99", small)]:
            group.create_task(frames.dispatcher.receive(frames.stage.shard, "up", mac, frame))
    assert len(read) == 6 and read.index(len(small)) <= 2
