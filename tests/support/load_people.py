"""What devices, clients and strangers do to a `LoadSite`: ordinary conversations, and every kind of trouble once."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.access.renewals import Renewals
from fleet.workbench.conformance.context import CheckContext, answered, turn, utter
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import Call, Round
from fleet.workbench.conformance.tool_use import tooled
from fleet.workbench.sim.audio.encoder import encode_all
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Tool
from tests.support.front_client import FrontClient, connect_packet
from tests.support.gateway_client import BATTERY, gateway_client
from tests.support.gateway_stage import UNHURRIED
from tests.support.load_site import REFUSED, LoadSite
from tests.support.ports import LOOPBACK
from tests.support.redis_store import opened
from tests.support.waking import wake_up

BAD_AIR = Faults(loss=0.03, reorder=0.03, duplicate=0.05, forged=0.05, broken_json=0.3)
TURNS = 2
SENT, LOST = 20, 5
"""Packets that the device with the gap sends, and those that it leaves out."""
MUCH_LATER = 4_000_000_000
"""Until then an earlier password is accepted; in seconds since 1970."""
STRAYS = 3
"""Packets that it sends under a number that nobody has."""
_SAID = 1.2
_PATIENCE = 240.0


class Holding:
    """A device in the midst of a turn: one of its three calls is not answered until `let_go`.

    Args:
        context: Makes devices, and knows the scripted models.
    """

    calls: tuple[Call, ...] = (("hold.on", {}), ("hold.briefly", {}), ("get_current_time", {}))

    def __init__(self, context: CheckContext) -> None:
        self._context = context
        self._free = asyncio.Event()
        self.called = asyncio.Event()

    def let_go(self) -> None:
        self._free.set()

    async def run(self) -> None:
        """Hold the conversation, which ends after `let_go` only."""
        tools = (Tool("self.hold.on", "Holds on.", self._hold), Tool("self.hold.briefly", "Holds briefly.", _nod))
        rounds = (Round(calls=self.calls), Round("It is done."))
        async with tooled(self._context, *tools) as scripted:
            with self._context.scene(rounds=rounds, reply_seconds=1.0) as scene:
                await answered(scripted, await utter(scripted, scene), _PATIENCE)
            scripted.goodbye()

    async def _hold(self, _: Board, __: Arguments) -> Outcome:
        self.called.set()
        await self._free.wait()
        return True


async def _nod(_: Board, __: Arguments) -> Outcome:
    return True


async def talk_through_bad_air(site: LoadSite, context: CheckContext, seed: int) -> None:
    """Hold a conversation with a tool call in each turn, while datagrams and messages go wrong."""
    mac = f"02:00:00:00:01:{seed:02x}"
    device = SimDevice(context.profile, ota_url=context.setup.ota_url, mac=mac, seed=seed, faults=BAD_AIR)
    async with device.running(_PATIENCE):
        await wake_up(device)
        await asyncio.to_thread(site.until_discovered, mac)
        for _ in range(TURNS):
            rounds = (Round(calls=(("get_device_status", {}),)), Round("All is well."))
            with context.scene(rounds=rounds, reply_seconds=1.0) as scene:
                said = await device.say(voice.say(scene.mark, _SAID), _PATIENCE)
                assert said.outcome == "answered", said
        assert await device.hang_up(_PATIENCE)


async def hear_apologies(context: CheckContext) -> None:
    """Say what the chat model, and then recognition, fail at; both times there is an apology."""
    async with context.scripted_device() as scripted:
        await scripted.hello()
        for trouble in ({"rounds": (Round(fault="status 500"),) * 4}, {"asr": "error"}):
            with context.scene(**trouble) as scene:
                await turn(scripted, scene, _PATIENCE)
        scripted.goodbye()


async def be_refused(context: CheckContext) -> None:
    async with context.scripted_device(mac=REFUSED) as scripted:
        scripted.send(outbound.hello(scripted.profile))
        await scripted.messages.expect("goodbye", seconds=_PATIENCE)


async def send_junk(site: LoadSite, context: CheckContext) -> None:
    """Send audio with a gap, what is no audio, what is nobody's, and a message that is none."""
    async with context.scripted_device() as scripted:
        await scripted.hello()
        scripted.send(b'{"type":')
        scripted.send(outbound.listen_start(scripted.session, "auto"))
        packets = encode_all(bytes(2 * 16 * 60 * SENT), 60)
        for at, payload in enumerate(packets):
            scripted.audio.send(payload, sequence=at + 1 if at < SENT // 2 else at + 1 + LOST)
        scripted.audio.send(packets[0], sequence=1)
        scripted.audio.send_raw(b"short")
        async with _more(site, STRAYS, "fleet_edge_drops_total", reason="unknown_ssrc"):
            _send_strays(scripted, packets[0])
        scripted.goodbye()


def _send_strays(scripted: ScriptedDevice, payload: bytes) -> None:
    datagram = bytearray(scripted.audio.seal(payload, sequence=1))
    datagram[4:8] = bytes(byte ^ 255 for byte in datagram[4:8])
    for _ in range(STRAYS):
        scripted.audio.send_raw(bytes(datagram))


async def be_unheard(site: LoadSite, context: CheckContext) -> None:
    """Open a session, send no packet, and get a text's answer, which cannot be spoken."""
    async with (
        context.scripted_device() as scripted,
        httpx2.AsyncClient(base_url=site.api_url, trust_env=False, timeout=_PATIENCE) as client,
    ):
        await scripted.hello()
        with context.scene() as scene:
            async with _more(site, 1, "fleet_turns_given_up_total", reason="no_audio_path"):
                answer = await client.post(
                    f"/devices/{scripted.mac}/input",
                    json={"text": scene.words},
                    headers={"Authorization": f"Bearer {site.token}"},
                )
                assert answer.status_code == 202, answer.text
        scripted.goodbye()


@asynccontextmanager
async def _more(site: LoadSite, count: int, series: str, **labels: str) -> AsyncIterator[None]:
    """Wait, after the block, until the edges have counted so many more than before it."""
    before = (await asyncio.to_thread(site.scrape, "edge")).value(series, **labels)
    yield
    await asyncio.to_thread(site.until_shown, "edge", before + count, series, math.inf, **labels)


async def have_the_password_renewed(site: LoadSite, context: CheckContext) -> None:
    """Be asked to restart, because the operator renews the password."""
    async with context.scripted_device() as scripted, opened(site.site.redis.url) as store:
        await asyncio.to_thread(site.site.until_heard, [scripted.mac])
        await Admissions(store).renew(scripted.mac, until=MUCH_LATER)
        await Renewals(store).ask_now([scripted.mac])
        await asyncio.to_thread(site.until_shown, "worker", 1, "fleet_password_renewals_total", math.inf)


async def visit_the_api(site: LoadSite) -> None:
    """Ask for what is not there, and for what needs a token."""
    async with httpx2.AsyncClient(base_url=site.api_url, trust_env=False, timeout=_PATIENCE) as client:
        assert (await client.get("/nothing")).status_code == 404
        assert (await client.post("/devices/02:00:00:00:00:01/input", json={"text": "hi"})).status_code == 401


async def use_the_gateway(site: LoadSite, context: CheckContext, leave: asyncio.Event) -> None:
    """Ask two questions, one with a call of the client's own tool; send a frame that is none; stay connected.

    Before that somebody else's page is turned away.
    """
    with pytest.raises(InvalidStatus):
        await connect(site.gateway_url, origin=Origin("http://elsewhere.example"), proxy=None, **UNHURRIED)
    async with gateway_client(site.gateway_url) as client:
        await client.register(BATTERY)
        with context.scene(rounds=(Round(calls=(("get_battery", {}),)), Round("It is full."))) as scene:
            assert "full" in (await client.turn(scene.words, {"get_battery": lambda _: {"level": 100}})).content
        with context.scene(rounds=(Round(fault="status 500"),) * 4) as scene:
            assert (await client.turn(scene.words)).code == "LLM_ERROR"
        await client.send_raw("no JSON")
        assert (await client.reply())["code"] == "INVALID_MESSAGE"
        await leave.wait()


async def pass_the_front(site: LoadSite, leave: asyncio.Event) -> None:
    """Be refused at the front, and pass it as somebody else; stay connected."""
    mac = "02:00:00:00:02:01"
    own = site.site.keys.issue("device", mac, policy="first", generation=1)
    stranger = await FrontClient.open(LOOPBACK, site.front_port)
    await stranger.send(connect_packet(own.client_id, own.username, "wrong"))
    await stranger.closed()
    device = await FrontClient.open(LOOPBACK, site.front_port)
    try:
        assert await device.connect(own.client_id, own.username, own.password) == 0
        await leave.wait()
    finally:
        await FrontClient.discard_all()
