"""Commands that wait for a device, over the REST API and as commands, with both kinds of database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.client import device_commands, jobs
from fleet.client.call import Call, ClientError
from fleet.client.client import AsyncFleetClient
from fleet.core.permissions import DEVICES_DANGEROUS, SCOPES
from fleet.roles.control.access import milliseconds
from fleet.wire.control.device_commands import DeviceCommandRequest, DeviceCommandState
from fleet.wire.control.jobs import JobRequest
from fleet.wire.operator_calls import LATE
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import NOW, JobSite

VOLUME = "self.audio_speaker.set_volume"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def site(stage: ControlStage) -> JobSite:
    """The work of the leader beside the stage's control."""
    one = JobSite(stage.database, stage.services.store)
    await one.lead()
    return one


@pytest.fixture
async def client(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as opened:
        yield opened


@pytest.fixture
async def mac(site: JobSite) -> str:
    """A device that is away."""
    (name,) = await site.add_devices(1, online=False)
    await site.store.client.hset(site.store.keys.device(name), "dialect", "xiaozhi")
    await site.connect([name], online=False)
    return name


def asked(**fields: object) -> DeviceCommandRequest:
    return DeviceCommandRequest.model_validate({"tool": "self.reboot", **fields})


async def refused(client: AsyncFleetClient, call: Call) -> str:  # type: ignore[type-arg]
    with pytest.raises(ClientError) as refusal:
        await client.send(call)
    return f"{refusal.value.status} {refusal.value.code}"


async def reach(site: JobSite, client: AsyncFleetClient, mac: str, command: int, state: str) -> DeviceCommandState:
    """Let the leader work until a command has a state."""
    async with asyncio.timeout(240):
        while True:
            await site.prepare()
            await site.step()
            found = await client.send(device_commands.read(mac, command))
            if found.state == state:
                return found
            await asyncio.sleep(0.02)


async def hand_over(site: JobSite, outcome: tuple[CallState, str]) -> None:
    """Let the leader work until it hands a call over, and answer that."""
    async with asyncio.timeout(240):
        while not await site.answer(lambda _: outcome):
            await site.prepare()
            await site.step()
            await asyncio.sleep(0.02)


async def come(site: JobSite, mac: str) -> None:
    """Let the device connect, and the time pass for which it is left alone."""
    await site.connect([mac])
    site.feeder.notice([StoredEvent(1, 1, NOW, "device.online", mac_number(mac), "{}")])
    await site.step()


async def test_a_command_waits_for_its_device_and_is_sent_once_some_seconds_after_it_comes(
    site: JobSite, client: AsyncFleetClient, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await client.send(device_commands.create(mac, asked()))
    assert (made.state, made.device, made.tool) == ("queued", mac, "self.reboot")
    await reach(site, client, mac, made.id, "waiting")
    assert await site.waiting_calls() == []
    now = milliseconds()
    monkeypatch.setattr("fleet.roles.control.leader.job_work.milliseconds", lambda: now)
    await come(site, mac)
    await site.step()
    assert await site.waiting_calls() == [], "its tools are asked for first"
    later = 14_000
    monkeypatch.setattr("fleet.roles.control.leader.job_work.milliseconds", _shifted(later))
    await reach(site, client, mac, made.id, "sent")
    await hand_over(site, ("ok", "true"))
    assert (await reach(site, client, mac, made.id, "ok")).text == "true"
    assert site.published == {mac: 1}
    assert [one.id for one in (await client.send(device_commands.listing(mac))).items] == [made.id]


@pytest.mark.parametrize("outcome", ["error", "unknown"])
async def test_what_may_have_been_done_is_not_sent_again(
    site: JobSite, client: AsyncFleetClient, mac: str, outcome: CallState
) -> None:
    await site.connect([mac])
    made = await client.send(device_commands.create(mac, asked()))
    await hand_over(site, (outcome, "no"))
    await reach(site, client, mac, made.id, outcome)
    for _ in range(5):
        await site.step()
    assert await site.waiting_calls() == []
    assert site.published == {mac: 1}


async def test_nobody_sends_a_command_again_as_a_job(site: JobSite, client: AsyncFleetClient, mac: str) -> None:
    await site.connect([mac])
    made = await client.send(device_commands.create(mac, asked()))
    await hand_over(site, ("unknown", "no"))
    await reach(site, client, mac, made.id, "unknown")
    assert await refused(client, jobs.retry(made.id, ["unknown"])) == "409 sent-once"
    for _ in range(5):
        await site.step()
    assert await site.waiting_calls() == []


async def test_no_job_has_the_name_of_commands(client: AsyncFleetClient, mac: str) -> None:
    fake = JobRequest(name="command", kind="reboot", query=f"mac={mac}")
    assert await refused(client, jobs.create(fake)) == "422 invalid"
    assert await refused(client, jobs.preview(fake)) == "422 invalid"
    assert (await client.send(device_commands.listing(mac))).items == []


async def test_what_was_not_sent_in_time_waits_on(site: JobSite, client: AsyncFleetClient, mac: str) -> None:
    await site.connect([mac])
    made = await client.send(device_commands.create(mac, asked()))
    await hand_over(site, ("not_sent", LATE))
    assert LATE in (await reach(site, client, mac, made.id, "waiting")).text


async def test_a_newer_command_with_the_same_key_takes_its_place_and_others_are_cancelled(
    site: JobSite, client: AsyncFleetClient, mac: str
) -> None:
    first = await client.send(device_commands.create(mac, asked(key="k")))
    await reach(site, client, mac, first.id, "waiting")
    second = await client.send(device_commands.create(mac, asked(key="k")))
    other = await client.send(device_commands.create(mac, asked(key="other")))
    await reach(site, client, mac, first.id, "superseded")
    await client.send(device_commands.cancel(mac, other.id))
    await reach(site, client, mac, other.id, "cancelled")
    await reach(site, client, mac, second.id, "waiting")
    listed = [one.id for one in (await client.send(device_commands.listing(mac))).items]
    assert listed == [other.id, second.id, first.id]
    assert (await client.send(device_commands.cancel(mac, first.id))).state == "superseded"


async def test_one_that_was_not_sent_expires(
    site: JobSite, client: AsyncFleetClient, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await client.send(device_commands.create(mac, asked(expires_seconds=1)))
    monkeypatch.setattr("fleet.roles.control.leader.job_work.milliseconds", _shifted(2_000))
    await reach(site, client, mac, made.id, "expired")


async def test_who_may_not_and_what_cannot_is_refused(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage, mac: str
) -> None:
    few = await stage.add_token("few", *(set(SCOPES) - {DEVICES_DANGEROUS}))
    async with AsyncFleetClient(str(stage.client.base_url), few or "few") as weak:
        assert await refused(weak, device_commands.create(mac, asked())) == "403 scope-missing"
    made = await client.send(device_commands.create(mac, asked()))
    async with AsyncFleetClient(str(stage.client.base_url), STRANGER) as stranger:
        assert await refused(stranger, device_commands.read(mac, made.id)) == "404 not-found"
        assert await refused(stranger, device_commands.cancel(mac, made.id)) == "404 not-found"
    assert await refused(client, device_commands.create(mac, asked(tool="self.no.such"))) == "404 not-found"
    job = await client.send(jobs.create(_volume()))
    assert await refused(client, device_commands.read(mac, job.id)) == "404 not-found", "a job that is no command"
    assert await ToolLists(site.store).read(mac) == ()


async def test_the_commands_do_the_same(site: JobSite, stage: ControlStage, fleet: CommandLine, mac: str) -> None:
    operator = Operator(fleet, stage)
    made = await operator.row("devices", "command", mac, "self.reboot", "--key", "k")
    assert "self.reboot" in await operator.run("devices", "commands", mac)
    assert "command" in await operator.run("devices", "cancel", mac, str(made["id"]))


def _shifted(ms: int) -> Callable[[], int]:
    return lambda: milliseconds() + ms


def _volume() -> "jobs.JobRequest":
    return jobs.JobRequest.model_validate({"name": "j", "query": "", "tool": VOLUME, "arguments": {"volume": 4}})
