"""Two devices with two agents, on two workers and two edges that are never restarted: real processes and real audio."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis

from fleet.wire.topics import shard_of
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.control_role import control_api
from tests.support.openai_server import Answer, OpenAiServer, Request, run_openai_server, spoken
from tests.support.process import accepts
from tests.support.recordings import recordings
from tests.support.role_site import SHARDS, RoleSite, one_of_each_shard, role_site
from tests.support.until import until
from tests.support.waking import wake_up

pytestmark = pytest.mark.scripted

LIMIT = 240.0
WORDS = recordings("en")[2].pcm()
TONE = (b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 250
"""A quarter of a second at 24 kHz."""
PIRATE, MONK = "You are a pirate.", "You are a monk."
Heard = list[tuple[str, str, str]]


def answer_by_prompt(request: Request) -> Answer:
    system = request.json["messages"][0]["content"]
    return spoken("Ahoy, my friend." if PIRATE in system else "Peace be with you.")


@pytest.fixture
def models() -> Iterator[OpenAiServer]:
    with run_openai_server() as server:
        server.answer("chat/completions", answer_by_prompt)
        server.transcriptions(Answer([b'{"text": "Turn it down, please.", "language": "en"}']))
        server.speech(Answer([TONE], kind="audio/pcm"))
        yield server


async def ask(client: httpx2.AsyncClient, verb: str, **body: Any) -> Any:
    method, _, path = verb.partition(" ")
    answer = await client.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def assign(client: httpx2.AsyncClient, agent: int, mac: str) -> None:
    """Give a device an agent as soon as the registry knows the device."""
    async with asyncio.timeout(LIMIT):
        while (await client.post(f"agents/{agent}:assign", json={"device": mac})).status_code == 404:
            await asyncio.sleep(0.2)


async def awake_on_two_edges(site: RoleSite, devices: Sequence[SimDevice], stack: AsyncExitStack) -> None:
    """Switch two devices on, and let the second one connect until it has another edge than the first."""
    with redis.Redis.from_url(site.redis.url, decode_responses=True) as store:

        def edge_of(device: SimDevice) -> str | None:
            return store.hget(f"f:{{{shard_of(device.mac, SHARDS)}}}:s:{device.mac}", "edge")

        for device in devices:
            await stack.enter_async_context(device.running(LIMIT))
            await wake_up(device)
        for _ in range(20):
            if edge_of(devices[0]) != edge_of(devices[1]):
                return
            await devices[1].hang_up(LIMIT)
            await wake_up(devices[1])
    raise AssertionError("both devices are on one edge")


async def hear(models: OpenAiServer, devices: Sequence[SimDevice]) -> Heard:
    """Let each device talk; return prompt, language of recognition and voice of its turn."""
    heard: Heard = []
    for device in devices:
        async with asyncio.timeout(LIMIT):
            outcome = ""
            # A standstill may cut the words in two: then the second part begins another turn.
            while outcome in ("", "silent"):
                models.requests.clear()
                outcome = (await device.say(WORDS, seconds=LIMIT)).outcome
        assert outcome == "answered"
        by_path = {request.path.removeprefix("/v1/"): request for request in models.requests}
        prompt = by_path["chat/completions"].json["messages"][0]["content"].partition("\n")[0]
        language = by_path["audio/transcriptions"].form.get("language", b"").decode()
        heard.append((prompt, language, by_path["audio/speech"].json["voice"]))
    return heard


def devices_of_two_workers(site: RoleSite) -> list[SimDevice]:
    owners, macs = site.owners(), one_of_each_shard()
    second = next(mac for mac in macs if owners[shard_of(mac, SHARDS)] != owners[shard_of(macs[0], SHARDS)])
    return [SimDevice(find_profile("P1"), ota_url=site.ota, mac=mac) for mac in (macs[0], second)]


async def test_two_devices_speak_as_their_agents_say_without_a_restart(models: OpenAiServer, tmp_path: Path) -> None:
    with role_site(tmp_path, models.url) as site:
        roles = [site.edge(), site.edge(), site.worker(), site.worker()]
        site.api()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(control_api(site, tmp_path, LIMIT))
            await asyncio.to_thread(until, lambda: site.edges() == 2 and accepts(site.http_port), LIMIT)
            await asyncio.to_thread(site.until_spread, 8, 8, seconds=LIMIT)
            devices = devices_of_two_workers(site)
            await awake_on_two_edges(site, devices, stack)
            usual = await hear(models, devices)
            assert usual[0] == usual[1] and usual[0][1:] == ("", "alloy")
            agents = []
            for name, prompt, language, voice in (("a", PIRATE, "en", "onyx"), ("b", MONK, "zh", "nova")):
                draft = {"prompt": prompt, "language": language, "voice": {"name": voice}}
                agents.append((await ask(client, "POST agents", name=name, draft=draft))["id"])
                await ask(client, f"POST agents/{agents[-1]}:publish")
            for agent, device in zip(agents, devices, strict=True):
                await assign(client, agent, device.mac)
            assert await hear(models, devices) == [(PIRATE, "en", "onyx"), (MONK, "zh", "nova")]
            for agent, prompt in zip(agents, (MONK, PIRATE), strict=True):
                await ask(client, f"PATCH agents/{agent}", draft={"prompt": prompt, "voice": {"name": "echo"}})
                await ask(client, f"POST agents/{agent}:publish")
            assert await hear(models, devices) == [(MONK, "", "echo"), (PIRATE, "", "echo")]
            assert all(role.code is None for role in roles)
