"""Group U: UDP uplink. What devices send, and what others send in their name."""

import asyncio
import secrets

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import CheckContext, answered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import Scene
from fleet.workbench.conformance.talk import (
    REPLY_SECONDS,
    ask,
    complete,
    finish,
    heard,
    length,
    press,
    talking,
    understood,
    until_speaking,
)
from fleet.workbench.conformance.verdict import require
from fleet.workbench.sim.audio import toc
from fleet.workbench.sim.audio.encoder import UplinkEncoder, encode_all
from fleet.workbench.sim.connection.datagram import HEADER
from fleet.workbench.sim.scripted.device import ScriptedDevice

GROUP = Group("U", "UDP uplink")

_SAID = 1.2
_JUMP = 0xFFFF_FFFF
_OLD = 6


@GROUP.check(
    "U1", "packets made as firmware makes them are decrypted, and recognition is given the speech", steered=True
)
async def recognised(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            answer = await ask(device, voice.say(scene.mark, _SAID))
            understood(answer, scene)
            got = complete(context, scene, _SAID)
            return f"recognition was given {got:.2f} of {_SAID:g} s of speech, {device.audio.sent} packets sent"


async def _say_half(device: ScriptedDevice, scene: Scene) -> float:
    """Say the first half of a scene while the rest waits to be said; return when that began."""
    since = device.clock()
    await press(device)
    device.microphone.say(voice.say(scene.mark, _SAID))
    await asyncio.sleep(_SAID / 2)
    return since


@GROUP.check("U2", "when the source port changes, audio follows to the new address", steered=True)
async def follows(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            since = await _say_half(device, scene)
            old, new = device.audio.port, device.audio.rebind()
            await finish(device)
            answer = await answered(device, since)
            understood(answer, scene)
            astray = [one for one in device.audio.datagrams if one.port == old]
            require(not astray, f"{len(astray)} datagrams still came to the old port")
            count = len([one for one in device.audio.datagrams if one.port == new])
            require(count, "no datagram came to the new port")
            got = complete(context, scene, _SAID)
            return f"{count} datagrams to the new port, none to the old; {got:.2f} of {_SAID:g} s of speech heard"


@GROUP.check("U3", "a forged packet from elsewhere does not move the device's address", steered=True)
async def forged(context: CheckContext) -> str:
    with context.scene(reply_seconds=3.0) as scene:
        async with talking(context) as device:
            await until_speaking(device, scene, 0.5)
            # No packet of the device's own may follow that would move the address back.
            device.microphone.on = False
            stranger = device.audio.stranger()
            sent = device.clock()
            stranger.send(_forge(device), device.audio.server)
            await device.messages.expect("tts", "stop", seconds=10, after=sent)
            after = device.audio.since(sent)
            astray = [one for one in after if one.port == stranger.port]
            require(not astray, f"{len(astray)} of {len(after)} datagrams came to the forger")
            require(len(after) > 20, f"only {len(after)} datagrams came after the forged one")
            return f"{len(after)} datagrams after the forged one, all of them to the device"


def _forge(device: ScriptedDevice) -> bytes:
    """Return a packet whose payload was made without the key, and does not look like audio by chance."""
    while True:
        datagram = device.audio.seal(b"", sequence=device.audio.sent + 2)[:2]
        header = datagram + (100).to_bytes(2) + device.audio.seal(b"", sequence=device.audio.sent + 2)[4:HEADER]
        body = secrets.token_bytes(100)
        if toc.duration_ms(device.audio.crypt(header, body)) != device.profile.frame_ms:
            return header + body


@GROUP.check("U4", "duplicates and old sequence numbers are not given to recognition", steered=True)
async def repeated(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            sent: list[bytes] = []

            def send(packet: bytes) -> None:
                sent.append(packet)
                device.audio.send(packet)
                device.audio.send(packet, sequence=device.audio.sent)
                if len(sent) > _OLD:
                    device.audio.send(sent[-_OLD], sequence=device.audio.sent - _OLD + 1)

            device.microphone.send = send
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)
            got = complete(context, scene, _SAID)
            return f"every packet sent two or three times, {got:.2f} s of {_SAID:g} s of speech heard"


@GROUP.check("U5", "a jump to sequence number 0xFFFFFFFF is refused, and the normal stream goes on", steered=True)
async def jump(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            since = await _say_half(device, scene)
            encoder = UplinkEncoder(device.profile.frame_ms)
            device.audio.send(encoder.encode(bytes(encoder.frame_bytes)), sequence=_JUMP)
            await finish(device)
            understood(await answered(device, since), scene)
            got = complete(context, scene, _SAID)
            return f"{got:.2f} of {_SAID:g} s of speech heard, with the jump in their midst"


@GROUP.check("U6", "datagrams with a wrong length, type or ssrc are dropped without a reply", steered=True)
async def malformed(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene, context.scene() as false:
        async with talking(context) as device:
            since = device.clock()
            await press(device)
            stranger = device.audio.stranger()
            device.microphone.say(voice.say(scene.mark, _SAID))
            await asyncio.sleep(_SAID / 2)
            packets = encode_all(voice.say(false.mark, 0.6), device.profile.frame_ms)
            wrong = [_spoil(device, packet, number) for number, packet in enumerate(packets)]
            for datagram in wrong:
                device.audio.send_raw(datagram)
                stranger.send(datagram, device.audio.server)
            ended = await finish(device)
            early = device.audio.between(0.0, ended)
            require(not early, f"{len(early)} datagrams came before anything was to be said")
            understood(await answered(device, since), scene)
            require(not [one for one in device.audio.datagrams if one.port == stranger.port], "a stranger got a reply")
            got = complete(context, scene, _SAID)
            leaked = length(heard(context, scene), false.mark)
            require(not leaked, f"recognition was given {leaked:.2f} s of the datagrams that had to be dropped")
            return f"{2 * len(wrong)} wrong datagrams without effect, {got:.2f} of {_SAID:g} s of speech heard"


def _spoil(device: ScriptedDevice, payload: bytes, number: int) -> bytes:
    """Return a datagram with the right key and a sequence number that is next, that is wrong in one of four ways."""
    whole = device.audio.seal(payload, sequence=device.audio.sent + 1 + number)
    header = bytearray(whole[:HEADER])
    match number % 4:
        case 0:
            header[2:4] = (len(payload) + 1).to_bytes(2)
        case 1:
            header[0] = 2
        case 2:
            header[4:8] = bytes(byte ^ 0xA5 for byte in header[4:8])
        case _:
            return whole[: HEADER - 1]
    return bytes(header) + device.audio.crypt(bytes(header), payload)
