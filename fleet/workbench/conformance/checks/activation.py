"""Group A: Activation, against a server that serves bound devices only."""

import asyncio
import json
from dataclasses import dataclass, replace

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import CheckContext, fresh_mac
from fleet.workbench.conformance.http_exchange import Reply, post
from fleet.workbench.conformance.provision import Binding
from fleet.workbench.conformance.verdict import NotApplicable, require, span
from fleet.workbench.sim.bootstrap.activation import proof
from fleet.workbench.sim.bootstrap.ota import read_mqtt
from fleet.workbench.sim.messages.message import JsonObject, member, text
from fleet.workbench.sim.profiles.identity import Identity, headers, system_info

GROUP = Group("A", "Activation")

_BOUND, _WAITING = 200, 202
_POLLS, _PAUSE = 30, 0.1
_SOON = 1.0


@dataclass(frozen=True, slots=True)
class _Device:
    """A device before it is bound."""

    context: CheckContext
    binding: Binding
    identity: Identity

    async def boot(self, url: str = "") -> JsonObject:
        body = system_info(self.identity, self.context.profile).encode()
        reply = await post(url or self.binding.ota_url, headers(self.identity, self.context.profile), body)
        require(reply.status == 200, f"bootstrap answered status {reply.status}")
        return reply.json

    async def invitation(self) -> JsonObject:
        """Return the section `activation`, with all that a device needs of it."""
        section = member(await self.boot(), "activation")
        code, challenge = text(section, "code") or "", text(section, "challenge")
        require(code.isascii() and code.isdigit(), f"code {code!r}: only digits are spoken")
        require(challenge, "without a challenge the device does not ask")
        require(text(section, "message"), "there is no message to show")
        return section

    async def ask(self, body: JsonObject | None = None, url: str = "") -> Reply:
        """Ask whether it is bound."""
        target = (url or self.binding.ota_url).removesuffix("/") + "/activate"
        return await post(target, headers(self.identity, self.context.profile), json.dumps(body or {}).encode())

    def sign(self, challenge: str, key: bytes | None = None) -> JsonObject:
        """Return the proof, flat as firmware sends it."""
        identity = self.identity if key is None else replace(self.identity, key=key)
        return proof(identity, replace(self.context.profile, dialect="stock"), challenge)


@GROUP.check("A1", "an unbound device is given digits to show and a challenge, whatever version it speaks")
async def invites(context: CheckContext) -> str:
    first, second = _device(context), _device(context, serial="SN-unknown")
    section, other = await first.invitation(), await second.invitation()
    require(section["code"] != other["code"], "two devices show the same code")
    require(read_mqtt(member(await first.boot(), "mqtt")) is None, "it is given credentials although nobody bound it")
    return f"code of {len(str(section['code']))} digits, challenge of {len(str(section['challenge']))} characters"


@GROUP.check("A2", "a device that nobody bound yet is told to wait")
async def lets_wait(context: CheckContext) -> str:
    device = _device(context)
    await device.invitation()
    reply = await device.ask()
    require(reply.status == _WAITING, f"status {reply.status} in place of {_WAITING}")
    return f"status {reply.status}"


@GROUP.check("A3", "once its code was entered the device is told so, and bootstrap serves it")
async def binds(context: CheckContext) -> str:
    device = _device(context)
    section = await device.invitation()
    await device.binding.bind(str(section["code"]))
    reply = await device.ask()
    require(reply.status == _BOUND, f"status {reply.status} in place of {_BOUND}")
    answer = await device.boot()
    left = [name for name in ("code", "challenge") if name in member(answer, "activation")]
    require(not left, f"bootstrap still gives {' and '.join(left)}: the device would begin again")
    require(read_mqtt(member(answer, "mqtt")), "bootstrap gives no usable mqtt section")
    return "200, then credentials and no activation"


@GROUP.check("A4", "a proof counts only with the right key")
async def checks_proofs(context: CheckContext) -> str:
    device = _with_serial(context)
    challenge = str((await device.invitation())["challenge"])
    wrong, empty = await device.ask(device.sign(challenge, bytes(32))), {**device.sign(challenge), "hmac": ""}
    require(400 <= wrong.status < 500, f"a wrong proof: status {wrong.status}")
    unsigned = await device.ask(empty)
    require(unsigned.status != _BOUND, "a proof without signature: status 200")
    right = await device.ask(device.sign(challenge))
    require(right.status in (_BOUND, _WAITING), f"the right proof: status {right.status}")
    return f"right {right.status}, wrong {wrong.status}, unsigned {unsigned.status}"


@GROUP.check("A5", "a proof inside `Payload` counts as a flat one does")
async def takes_both_shapes(context: CheckContext) -> str:
    device = _with_serial(context)
    section = await device.invitation()
    challenge = str(section["challenge"])
    statuses = []
    for signed in (device.sign(challenge), device.sign(challenge, bytes(32))):
        flat, wrapped = await device.ask(signed), await device.ask({"Payload": signed})
        require(flat.status == wrapped.status, f"flat {flat.status}, inside Payload {wrapped.status}")
        statuses.append(flat.status)
    await device.binding.bind(str(section["code"]))
    bound = await device.ask({"Payload": device.sign(challenge)})
    require(bound.status == _BOUND, f"bound, inside Payload: status {bound.status}")
    return f"right {statuses[0]}, wrong {statuses[1]}, bound {bound.status}, in both shapes"


@GROUP.check("A6", "a challenge that is another device's or invented is refused, even of a bound device")
async def refuses_challenges(context: CheckContext) -> str:
    device, other = _device(context, serial="SN-unknown"), _device(context)
    section, foreign = await device.invitation(), str((await other.invitation())["challenge"])
    await device.binding.bind(str(section["code"]))
    signed = replace(device, identity=replace(device.identity, key=bytes(32)))
    statuses = [(await device.ask(signed.sign(challenge))).status for challenge in (foreign, "0" * 64)]
    require(_BOUND not in statuses, f"another device's: status {statuses[0]}, invented: {statuses[1]}")
    return f"another device's {statuses[0]}, invented {statuses[1]}"


@GROUP.check("A7", "both spellings of the bootstrap address lead to activation")
async def routes_both(context: CheckContext) -> str:
    device = _device(context)
    plain = device.binding.ota_url.removesuffix("/")
    for url in (plain, f"{plain}/"):
        require("activation" in await device.boot(url), f"{url}: no activation")
        reply = await device.ask(url=url)
        require(reply.status == _WAITING, f"{url}: status {reply.status}")
    return f"{plain} with and without the slash"


@GROUP.check("A8", "ten questions a second are answered at once, and the code stays")
async def answers_cheaply(context: CheckContext) -> str:
    device = _device(context)
    section = await device.invitation()
    times = []
    for number in range(_POLLS):
        reply = await (device.ask() if number % 5 else device.ask({}))
        require(reply.status == _WAITING, f"question {number + 1}: status {reply.status}")
        times.append(reply.seconds)
        await asyncio.sleep(max(0.0, _PAUSE - reply.seconds))
    middle = sorted(times)[len(times) // 2]
    require(middle < _SOON, f"half of the answers took longer than {span(middle)}")
    after = await device.invitation()
    require(after["code"] == section["code"], "another code is shown although nobody used the first")
    return f"{_POLLS} answers, half within {span(middle)}, the same code after them"


def _device(context: CheckContext, serial: str = "", key: bytes = b"") -> _Device:
    binding = context.setup.binding
    if binding is None:
        raise NotApplicable("needs a server that serves bound devices only; see --activation and --bind")
    return _Device(context, binding, replace(Identity.of(fresh_mac()), serial=serial, key=key))


def _with_serial(context: CheckContext) -> _Device:
    binding = context.setup.binding
    if binding is not None and not binding.serial:
        raise NotApplicable("needs a serial number whose key the server knows; see --serial")
    return _device(context, binding.serial, binding.key) if binding else _device(context)
