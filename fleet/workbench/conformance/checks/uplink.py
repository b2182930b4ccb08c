"""Group U: UDP uplink. What devices send, and what others send in their name."""

import asyncio
import secrets

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.probe.audio import HEADER
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage, answered
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

GROUP = Group("U", "UDP uplink")

_SAID = 1.2
_JUMP = 0xFFFF_FFFF
_OLD = 6


@GROUP.check(
    "U1", "packets made as firmware makes them are decrypted, and recognition is given the speech", steered=True
)
async def recognised(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            answer = await ask(probe, voice.say(scene.mark, _SAID))
            understood(answer, scene)
            got = complete(stage, scene, _SAID)
            return f"recognition was given {got:.2f} of {_SAID:g} s of speech, {probe.audio.sent} packets sent"


async def _say_half(probe: Probe, scene: Scene) -> float:
    """Say the first half of a scene while the rest waits to be said; return when that began."""
    since = probe.clock()
    await press(probe)
    probe.microphone.say(voice.say(scene.mark, _SAID))
    await asyncio.sleep(_SAID / 2)
    return since


@GROUP.check("U2", "when the source port changes, audio follows to the new address", steered=True)
async def follows(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            since = await _say_half(probe, scene)
            old, new = probe.audio.port, probe.audio.rebind()
            await finish(probe)
            answer = await answered(probe, since)
            understood(answer, scene)
            astray = [one for one in probe.audio.datagrams if one.port == old]
            require(not astray, f"{len(astray)} datagrams still came to the old port")
            count = len([one for one in probe.audio.datagrams if one.port == new])
            require(count, "no datagram came to the new port")
            got = complete(stage, scene, _SAID)
            return f"{count} datagrams to the new port, none to the old; {got:.2f} of {_SAID:g} s of speech heard"


@GROUP.check("U3", "a forged packet from elsewhere does not move the device's address", steered=True)
async def forged(stage: Stage) -> str:
    with stage.scene(reply_seconds=3.0) as scene:
        async with talking(stage) as probe:
            await until_speaking(probe, scene, 0.5)
            # No packet of the device's own may follow that would move the address back.
            probe.microphone.on = False
            stranger = probe.audio.stranger()
            sent = probe.clock()
            stranger.send(_forge(probe), probe.audio.server)
            await probe.mail.expect("tts", "stop", seconds=10, after=sent)
            after = probe.audio.since(sent)
            astray = [one for one in after if one.port == stranger.port]
            require(not astray, f"{len(astray)} of {len(after)} datagrams came to the forger")
            require(len(after) > 20, f"only {len(after)} datagrams came after the forged one")
            return f"{len(after)} datagrams after the forged one, all of them to the device"


def _forge(probe: Probe) -> bytes:
    """Return a packet whose payload was made without the key, and does not look like audio by chance."""
    while True:
        datagram = probe.audio.seal(b"", sequence=probe.audio.sent + 2)[:2]
        header = datagram + (100).to_bytes(2) + probe.audio.seal(b"", sequence=probe.audio.sent + 2)[4:HEADER]
        body = secrets.token_bytes(100)
        if toc.duration_ms(probe.audio.crypt(header, body)) != probe.profile.frame_ms:
            return header + body


@GROUP.check("U4", "duplicates and old sequence numbers are not given to recognition", steered=True)
async def repeated(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            sent: list[bytes] = []

            def send(packet: bytes) -> None:
                sent.append(packet)
                probe.audio.send(packet)
                probe.audio.send(packet, sequence=probe.audio.sent)
                if len(sent) > _OLD:
                    probe.audio.send(sent[-_OLD], sequence=probe.audio.sent - _OLD + 1)

            probe.microphone.send = send
            understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
            got = complete(stage, scene, _SAID)
            return f"every packet sent two or three times, {got:.2f} s of {_SAID:g} s of speech heard"


@GROUP.check("U5", "a jump to sequence number 0xFFFFFFFF is refused, and the normal stream goes on", steered=True)
async def jump(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            since = await _say_half(probe, scene)
            encoder = UplinkEncoder(probe.profile.frame_ms)
            probe.audio.send(encoder.encode(bytes(encoder.frame_bytes)), sequence=_JUMP)
            await finish(probe)
            understood(await answered(probe, since), scene)
            got = complete(stage, scene, _SAID)
            return f"{got:.2f} of {_SAID:g} s of speech heard, with the jump in their midst"


@GROUP.check("U6", "datagrams with a wrong length, type or ssrc are dropped without a reply", steered=True)
async def malformed(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene, stage.scene() as false:
        async with talking(stage) as probe:
            since = probe.clock()
            await press(probe)
            stranger = probe.audio.stranger()
            probe.microphone.say(voice.say(scene.mark, _SAID))
            await asyncio.sleep(_SAID / 2)
            packets = encode_all(voice.say(false.mark, 0.6), probe.profile.frame_ms)
            wrong = [_spoil(probe, packet, number) for number, packet in enumerate(packets)]
            for datagram in wrong:
                probe.audio.send_raw(datagram)
                stranger.send(datagram, probe.audio.server)
            ended = await finish(probe)
            early = probe.audio.between(0.0, ended)
            require(not early, f"{len(early)} datagrams came before anything was to be said")
            understood(await answered(probe, since), scene)
            require(not [one for one in probe.audio.datagrams if one.port == stranger.port], "a stranger got a reply")
            got = complete(stage, scene, _SAID)
            leaked = length(heard(stage, scene), false.mark)
            require(not leaked, f"recognition was given {leaked:.2f} s of the datagrams that had to be dropped")
            return f"{2 * len(wrong)} wrong datagrams without effect, {got:.2f} of {_SAID:g} s of speech heard"


def _spoil(probe: Probe, payload: bytes, number: int) -> bytes:
    """Return a datagram with the right key and a sequence number that is next, that is wrong in one of four ways."""
    whole = probe.audio.seal(payload, sequence=probe.audio.sent + 1 + number)
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
    return bytes(header) + probe.audio.crypt(bytes(header), payload)
