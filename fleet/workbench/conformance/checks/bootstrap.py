"""Group O: Bootstrap. Firmware is in `firmware`, many devices at once in `bootstrap_storm`."""

from dataclasses import replace

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import CheckContext, fresh_mac
from fleet.workbench.conformance.http_exchange import Reply, post
from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.bootstrap.ota import read_mqtt
from fleet.workbench.sim.bootstrap.ota_rules import LARGEST, check_answer, check_response
from fleet.workbench.sim.messages.message import JsonObject, member
from fleet.workbench.sim.profiles.identity import Identity, headers, system_info

GROUP = Group("O", "Bootstrap")

_RAW_SSID = 'my "net\\'
_NO_UTF8 = "caf\udce9\udcff"


@GROUP.check("O1", "a device is told in less than 7 KB where it connects and what time it is")
async def tells_everything(context: CheckContext) -> str:
    reply = await boot(context)
    answer = judge(context, reply)
    require("server_time" in answer, "there is no server_time")
    return f"{len(reply.body)} bytes: {', '.join(answer)}"


@GROUP.check("O2", "a body that a network's name broke changes nothing")
async def survives_quotes(context: CheckContext) -> str:
    return await _same_as_whole(context, _RAW_SSID)


@GROUP.check("O3", "a body that is no UTF-8 changes nothing")
async def survives_bytes(context: CheckContext) -> str:
    return await _same_as_whole(context, _NO_UTF8)


@GROUP.check("O4", "every key fits into the device's memory, and the endpoint is a host and a port")
async def fits_memory(context: CheckContext) -> str:
    answer = judge(context, await boot(context))
    names = [*member(answer, "mqtt"), *member(answer, "websocket")]
    return f"longest key {max(names, key=len)}, endpoint {member(answer, 'mqtt').get('endpoint')}"


@GROUP.check("O8", "a body with board and application only is enough")
async def takes_brief_bodies(context: CheckContext) -> str:
    identity = Identity.of(fresh_mac())
    brief = b'{"application":{"version":"%s","elf_sha256":"0"},"board":{"type":"x","name":"y"}}'
    reply = await post(
        context.setup.ota_url, headers(identity, context.profile), brief % context.profile.version.encode()
    )
    judge(context, reply)
    return f"{len(reply.body)} bytes"


@GROUP.check("O9", "a missing Activation-Version counts as 1, and 2.1.1 as 2")
async def takes_versions(context: CheckContext) -> str:
    identity = Identity.of(fresh_mac())
    for version in (None, "2.1.1"):
        sent = {
            name: value for name, value in headers(identity, context.profile).items() if name != "Activation-Version"
        }
        if version is not None:
            sent |= {"Activation-Version": version, "Serial-Number": "SN-unknown"}
        judge(context, await post(context.setup.ota_url, sent, b"{}"))
    return "both answered as any other"


@GROUP.check("O10", "the answer has status 200 and an end that a device finds")
async def ends_properly(context: CheckContext) -> str:
    reply = await boot(context)
    judge(context, reply)
    framing = [name for name in reply.names if name.lower() in ("content-length", "transfer-encoding", "connection")]
    return f"status {reply.status}, {', '.join(sorted(framing))}"


@GROUP.check("O11", "a second bootstrap gives the same client id, and the first one's credentials still work")
async def keeps_credentials(context: CheckContext) -> str:
    async with context.scripted_device(connect=False) as device:
        first = await device.boot()
        second = await device.boot()
        require(first.client_id == second.client_id, f"client id {first.client_id}, then {second.client_id}")
        device.access = first
        if code := await device.connect():
            raise Failed(f"the first credentials were refused with CONNACK {code} after the second bootstrap")
        return f"client id {first.client_id}"


async def boot(context: CheckContext, ssid: str = "home", mac: str = "", board: str = "", version: str = "") -> Reply:
    """Ask bootstrap once, as a device of the profile does, or of another board or version."""
    identity, build = Identity.of(mac or fresh_mac(), ssid), context.profile
    build = replace(build, board=board or build.board, version=version or build.version)
    body = system_info(identity, build).encode("utf-8", "surrogateescape")
    return await post(context.setup.ota_url, headers(identity, build), body)


def judge(context: CheckContext, reply: Reply, running: str = "") -> JsonObject:
    """Return an answer's content, which must be one that a device can use.

    Args:
        context: The check's.
        reply: What came.
        running: The device's firmware; the profile's without it.

    Raises:
        Failed: A device would hang, crash, or not connect.
    """
    modem = context.profile.cellular
    known = {name.lower(): reply.headers[name] for name in reply.names if not modem or name.istitle()}
    found = [*check_response(reply.status, known, reply.body)]
    require(not found and len(reply.body) <= LARGEST, "; ".join(f"{rule}: {detail}" for rule, detail in found))
    answer = reply.json
    wrong = [f"{rule}: {detail}" for rule, detail in check_answer(answer, running or context.profile.version)]
    require(not wrong, "; ".join(wrong))
    return answer


async def _same_as_whole(context: CheckContext, ssid: str) -> str:
    mac = fresh_mac()
    whole = judge(context, await boot(context, mac=mac))
    broken = judge(context, await boot(context, ssid, mac))
    require(read_mqtt(member(whole, "mqtt")) == read_mqtt(member(broken, "mqtt")), "another mqtt section")
    return f"same mqtt section with the network {ssid!r}"
