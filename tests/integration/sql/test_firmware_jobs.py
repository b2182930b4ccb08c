"""Rollouts of firmware and assets on both kinds of database, with devices that do what each test says."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from sqlalchemy import update

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.devices.offers import Offers
from fleet.adapters.redis.shards.events import Outbox
from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_rows import JobRow, JobRows
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE
from fleet.core.job_kinds.firmware import VERIFY_MS
from fleet.core.query.fields import version_number
from fleet.roles.control.access import milliseconds
from fleet.roles.control.leader.event_collector import EventCollector
from fleet.wire.firmware_offer import FirmwareOffer
from fleet.wire.operator_calls import OperatorCall
from tests.support.job_site import JobSite
from tests.support.memory_store import memory_store

FAST = {"rate": 5_000, "window": 1_000}
OLD, NEW = "2.4.2", "2.5.0"


class Devices:
    """Devices that start when they are told, and do with an offer what `runs` says of its version.

    Args:
        site: Where jobs work.
        runs: Whether an image of a version starts.
    """

    def __init__(self, site: JobSite, runs: Callable[[str], bool] = lambda _: True) -> None:
        self.site, self.runs = site, runs
        self.versions: dict[str, str] = {}
        self.board = "board"
        self.taken: Counter[str] = Counter()
        self._times = iter(range(10**6))
        self._collector = EventCollector(
            Outbox(site.store), site.database, self._refresh, lambda _: None, range(site.store.keys.shards)
        )

    async def _refresh(self, _: object) -> int:
        return 0

    async def add(self, count: int, version: str = OLD) -> list[str]:
        number = version_number(version)
        macs = await self.site.add_devices(count, board="board", firmware=version, firmware_number=number)
        self.versions |= dict.fromkeys(macs, version)
        await self._collector.begin(self.site.fence)
        return macs

    async def boot(self, mac: str) -> FirmwareOffer | None:
        """Ask bootstrap; return the offer."""
        asker = BootstrapAsker(mac, "c1", "192.0.2.1")
        said = {"fw": self.versions[mac], "board": self.board, "boot": str(next(self._times))}
        # Bootstrap takes the time in seconds, and these devices start several times in one.
        found = await Admissions(self.site.store).decide("first", asker, said)
        return found.offer

    async def start(self, mac: str) -> None:
        """Start, install what is offered, and connect."""
        keys, offers = self.site.store.keys, Offers(self.site.store)
        await self.site.store.ask(self.site.store.client.hset(keys.device(mac), "on", "0"))
        while offer := await self.boot(mac):
            assert await offers.take(mac, offer.id, offer.secret)
            self.taken[mac] += 1
            if self.runs(offer.version):
                self.versions[mac] = offer.version
        await self.connect(mac)

    async def connect(self, mac: str) -> None:
        keys = self.site.store.keys
        await self.site.connect([mac])
        stream = keys.events(keys.shard(mac))
        await self.site.store.ask(self.site.store.client.xadd(stream, {"k": "device.online", "m": mac, "d": "{}"}))

    async def collect(self) -> None:
        await self._collector.step()

    async def run(self, job: JobRow, most: int = 400) -> JobRow:
        """Let devices do what their calls say, until the job is over, halted, or waits for evidence alone."""
        for _ in range(most):
            await self.site.step()
            for _, _, call in await self.site.waiting_calls():
                if call.tool == "self.reboot":
                    await self.start(call.device)
            await self.site.answer()
            await self.collect()
            found = await self.site.job(job.id)
            if found.state in ("halted", "done", "stopped"):
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(await self.site.job(job.id))


@pytest.fixture
async def site(database: Database, monkeypatch: pytest.MonkeyPatch) -> JobSite:
    monkeypatch.setattr("fleet.adapters.sql.database.LOOK_SECONDS", 120.0)
    one = JobSite(database, await memory_store())
    await one.lead()
    return one


async def rollout(site: JobSite, version: str = NEW, **fields: object) -> JobRow:
    image = await site.add_image(version)
    order = {"image": image.id, **fields.pop("order", {})}  # type: ignore[dict-item]
    policy = {**FAST, **fields.pop("policy", {})}  # type: ignore[dict-item]
    job = await site.add_job(image=image, kind="firmware", tool="", firmware=order, policy=policy, **fields)
    await site.prepare()
    return job


async def test_devices_install_the_image_and_prove_it_by_their_next_connection(site: JobSite) -> None:
    devices = Devices(site)
    macs = await devices.add(6)
    ended = await devices.run(await rollout(site))
    assert (ended.state, ended.counts["ok"]) == ("done", 6)
    assert devices.versions == dict.fromkeys(macs, NEW) and site.published == Counter(macs)
    assert {one.text for one in await site.executions(ended.id)} == {"it runs 2.5.0"}
    assert await devices.boot(macs[0]) is None, "nothing is offered any more"


async def test_an_image_that_does_not_run_halts_the_rollout_and_is_downloaded_once(site: JobSite) -> None:
    devices = Devices(site, runs=lambda version: version != NEW)
    macs = await devices.add(60)
    policy = {"stages": [{"count": 10, "min_sample": 5}, {"share": 1}], "window": 5, "halt_sample": 5}
    halted = await devices.run(await rollout(site, policy=policy))
    assert (halted.state, halted.counts["ok"], halted.counts["verifying"]) == ("halted", 0, 0)
    assert halted.counts["error"] == len(devices.taken) <= 10 and set(devices.taken.values()) == {1}
    assert {one.text for one in await site.executions(halted.id, "error")} == {"it came back with 2.4.2"}
    assert [await devices.boot(mac) for mac in macs] == [None] * 60
    back = await devices.run(await rollout(site, "2.3.0", order={"force": True}, query="board=board"))
    assert (back.state, back.counts["ok"]) == ("done", 60), "the older image, as a job"


async def test_a_device_that_goes_on_without_the_image_has_failed(site: JobSite) -> None:
    devices = Devices(site)
    (mac,) = await devices.add(1)
    job = await rollout(site, policy={"halt_share": 1.0})
    while not await site.waiting_calls():
        await site.step()
    assert await devices.boot(mac) is not None
    await site.answer()
    await devices.connect(mac)
    ended = await devices.run(job)
    assert [(one.state, one.text) for one in await site.executions(ended.id)] == [
        ("error", "it went on without the image")
    ]


async def test_a_stranger_who_names_the_new_version_is_no_proof(site: JobSite) -> None:
    devices = Devices(site)
    (mac,) = await devices.add(1)
    job = await rollout(site)
    while not await site.waiting_calls():
        await site.step()
    await site.answer()
    devices.versions[mac] = NEW
    await devices.boot(mac)
    for _ in range(5):
        await devices.collect()
        await site.step()
    found = await site.job(job.id)
    assert (found.state, found.counts["ok"], found.counts["verifying"]) == ("running", 0, 1)
    await devices.connect(mac)
    assert (await devices.run(job)).counts["ok"] == 1


async def test_other_boards_versions_that_cannot_be_compared_and_newer_ones_are_skipped(site: JobSite) -> None:
    devices = Devices(site)
    macs = await devices.add(5)
    changes = (
        {"board": "other"},
        {"firmware": "v2-lab", "firmware_number": None},
        {"firmware": NEW, "firmware_number": version_number(NEW)},
        {"firmware": "3.0", "firmware_number": version_number("3.0")},
    )
    async with site.database.writing() as connection:
        for mac, columns in zip(macs, changes, strict=False):
            await connection.execute(update(DEVICE).where(DEVICE.c.mac == mac_number(mac)).values(columns))
    ended = await devices.run(await rollout(site))
    reasons = {one.mac: one.text for one in await site.executions(ended.id, "skipped")}
    assert reasons == {
        macs[0]: "it is another board",
        macs[1]: "its version cannot be compared",
        macs[2]: "it runs this version",
        macs[3]: "it runs a newer version",
    }
    assert site.published == Counter(macs[4:])


async def test_a_halt_withdraws_what_no_device_was_given_and_the_job_goes_on_later(site: JobSite) -> None:
    devices = Devices(site)
    macs = await devices.add(3)
    job = await rollout(site, order={"how": "next_boot"})
    while (await site.job(job.id)).counts["verifying"] < 3:
        await site.step()
    assert site.published == Counter(), "nobody is told to start"
    offer = await devices.boot(macs[0])
    assert offer is not None
    await devices.collect()
    await JobRows(site.database, 1).change(job.id, state="halted")
    for _ in range(3):
        await site.step()
    halted = await site.job(job.id)
    assert (halted.counts["waiting"], halted.counts["verifying"]) == (2, 1)
    assert [await devices.boot(mac) for mac in macs[1:]] == [None, None]
    await JobRows(site.database, 1).change(job.id, state="running")
    while (await site.job(job.id)).counts["verifying"] < 3:
        await site.step()
    for mac in macs:
        await devices.start(mac)
    assert (await devices.run(job)).counts["ok"] == 3


async def test_a_device_that_does_not_start_while_the_job_lasts_has_not_failed(
    site: JobSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = Devices(site)
    macs = await devices.add(2)
    job = await rollout(site, order={"how": "next_boot"})
    while (await site.job(job.id)).counts["verifying"] < 2:
        await site.step()
    assert await devices.boot(macs[0]) is not None
    await devices.collect()
    await site.step()
    later = milliseconds() + job.policy["expires_seconds"] * 1000 + VERIFY_MS
    monkeypatch.setattr("fleet.roles.control.leader.job_work.milliseconds", lambda: later)
    await site.step()
    rows = {one.mac: one.state for one in await site.executions(job.id)}
    assert rows == {macs[0]: "unknown", macs[1]: "expired"}
    assert await devices.boot(macs[1]) is None


async def test_a_device_that_answers_true_has_not_installed_what_it_was_pushed(site: JobSite) -> None:
    devices = Devices(site)
    (mac,) = await devices.add(1)
    job = await rollout(site, order={"how": "push"})
    while not (calls := await site.waiting_calls()):
        await site.step()
    ((_, _, call),) = calls
    assert call.tool == "self.upgrade_firmware" and call.arguments["url"].startswith("http://api/xiaozhi/firmware/")
    assert await devices.boot(mac) is None, "bootstrap does not offer it"
    _, offer, secret = call.arguments["url"].rpartition("/")[2].removesuffix(".bin").rsplit("-", 2)[-3:]
    assert await Offers(site.store).take(mac, f"{job.id}-1", secret) and offer == "1"
    await devices.collect()
    await site.step()
    assert [one.text for one in await site.executions(job.id, "verifying")] == ["it downloads the image"]

    def answer(_: OperatorCall) -> tuple[CallState, str]:
        return "error", "true"

    await site.answer(answer)
    await site.step()
    assert [one.state for one in await site.executions(job.id)] == ["error"]


async def test_assets_are_proved_by_their_download(site: JobSite) -> None:
    devices = Devices(site)
    (mac,) = await devices.add(1)
    image = await site.add_image("words-1", "assets")
    job = await site.add_job(image=image, kind="assets", tool="", assets={"image": image.id}, policy=FAST)
    await site.prepare()
    while len(calls := await site.waiting_calls()) < 2:
        await site.step()
    assert [call.tool for _, _, call in calls] == ["self.assets.set_download_url", "self.reboot"]
    address = str(calls[0][2].arguments["url"])
    await site.answer()
    await site.step()
    assert (await site.job(job.id)).counts["verifying"] == 1
    secret = address.removesuffix(".bin").rpartition("-")[2]
    assert await Offers(site.store).take(mac, f"{job.id}-1", secret)
    await devices.collect()
    await site.step()
    assert [one.text for one in await site.executions(job.id, "ok")] == ["it downloads them"]


async def test_a_killed_leader_offers_the_same_again(site: JobSite) -> None:
    devices = Devices(site)
    macs = await devices.add(4)
    job = await rollout(site)
    found = await site.job(job.id)
    await site.step()
    await site.work._executions.hand_over(found, 1, [mac_number(mac) for mac in macs], {}, [])
    await site.lead()
    first = [call.arguments for _, _, call in await site.waiting_calls()]
    offers = [await devices.boot(mac) for mac in macs]
    await site.lead()
    assert [await devices.boot(mac) for mac in macs] == offers and len(first) == 4
    assert {one.state for one in await site.executions(job.id)} == {"sent"}
