"""Group V: Camera. Photos that a device uploads with the address and token that it was given."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import DISCOVERY_SECONDS, CheckContext, fresh_mac
from fleet.workbench.conformance.http_exchange import Reply, upload
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.verdict import NotApplicable, require, span
from fleet.workbench.sim.messages.message import JsonObject, item, member, text

GROUP = Group("V", "Camera")

LARGEST = 7000
"""Bytes of an answer; at 8192 firmware hangs."""
_PHOTO = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(range(256)) * 120 + b"\xff\xd9"
_HUGE = b"\xff\xd8\xff\xe0" + bytes(5 * 1024 * 1024)
_SLOW = 40.0
_STATUS_SECONDS = 30.0
_REFUSAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Camera:
    """A device's camera after the server's `initialize`."""

    url: str
    token: str
    mac: str
    chunked: bool

    async def explain(self, photo: bytes = _PHOTO, question: str | None = "What is it?") -> Reply:
        sent = {"Device-Id": self.mac, "Client-Id": "conformance"}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        return await upload(self.url, sent, photo, question, chunked=self.chunked)


@GROUP.check("V1", "a photo is explained to its device, and to nobody with a wrong token", steered=True)
async def explains(context: CheckContext) -> str:
    async with _camera(context) as camera:
        with context.scene(rounds=(Round("On the photo there is a red cup."),)) as scene:
            reply = await camera.explain(question=f"scene {scene.mark}: what is it?")
        answer = _judge(reply)
        require(reply.status == 200 and item(answer, "success") is True, f"status {reply.status}: {answer}")
        said = text(answer, "response") or text(answer, "result") or ""
        require("red cup" in said, f"the model's answer is not in {answer}")
        wrong = {
            "a wrong token": replace(camera, token=f"{camera.token[:-1]}{'A' if camera.token[-1:] != 'A' else 'B'}"),
            "no token": replace(camera, token=""),
            "another device's token": replace(camera, mac=fresh_mac()),
        }
        statuses = []
        for what, other in wrong.items():
            refused = await other.explain()
            require(refused.seconds < _REFUSAL_SECONDS, f"{what}: answered after {span(refused.seconds)}")
            served = refused.status == 200 and item(refused.json, "success") is True
            require(not served, f"{what}: it is explained all the same")
            statuses.append(str(refused.status))
        return f"explained in {span(reply.seconds)}; refused with {', '.join(statuses)}"


@GROUP.check("V2", "a model that takes 40 s is not waited for longer than the device waits", steered=True, seconds=90)
async def is_in_time(context: CheckContext) -> str:
    async with _camera(context) as camera:
        with context.scene(rounds=(Round("Much too late.", before=_SLOW),)) as scene:
            reply = await camera.explain(question=f"scene {scene.mark}: what is it?")
        require(reply.seconds < _STATUS_SECONDS, f"answered after {span(reply.seconds)}")
        answer = _judge(reply)
        message = text(answer, "message") or ""
        require(item(answer, "success") is not False or message, "a failure without a message for the user")
        return f"answered after {span(reply.seconds)}: {message or 'with an explanation'}"


@GROUP.check("V3", "what is too large, no JPEG, or without a question is refused quickly and in JSON")
async def refuses_quickly(context: CheckContext) -> str:
    async with _camera(context) as camera:
        wrong: dict[str, tuple[bytes, str | None]] = {
            "5 MB": (_HUGE, "What is it?"),
            "no JPEG": (b"GIF89a" + bytes(5000), "What is it?"),
            "no question": (_PHOTO, None),
        }
        seen = []
        for what, (photo, question) in wrong.items():
            reply = await camera.explain(photo, question)
            require(reply.seconds < _REFUSAL_SECONDS, f"{what}: answered after {span(reply.seconds)}")
            require(item(_judge(reply), "success") is not True, f"{what}: it is explained all the same")
            seen.append(f"{what} {reply.status}")
        return ", ".join(seen)


@asynccontextmanager
async def _camera(context: CheckContext) -> AsyncIterator[_Camera]:
    """Give the camera of a device that is connected.

    Raises:
        NotApplicable: The server gives its devices no address for photos.
    """
    async with context.scripted_device() as device:
        if not await device.tools.until("initialize", 3.0):
            await device.hello()
        requests = await device.tools.until("initialize", DISCOVERY_SECONDS)
        params = member(requests[-1].body, "params") if requests else {}
        vision = member(member(params, "capabilities"), "vision")
        url = text(vision, "url")
        if not url:
            raise NotApplicable("the server gives no address for photos")
        require(text(vision, "token"), "an address for photos without a token: anybody may use it")
        yield _Camera(url, text(vision, "token") or "", device.mac, chunked=not context.profile.is_py_xiaozhi)


def _judge(reply: Reply) -> JsonObject:
    require(len(reply.body) < LARGEST, f"{len(reply.body)} bytes: devices hang at 8192")
    return reply.json
