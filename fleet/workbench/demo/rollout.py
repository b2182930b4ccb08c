"""`scripts/demo --fleet`: a rollout over three boards, and one image that does not start on most of its devices.

The canary finds it, the job halts, the boot loader of those devices has started the earlier image, and a further job
brings the earlier image back to the others. Everything goes over the REST API, as `fleet jobs` does it.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from fleet.client import devices as device_calls
from fleet.client import jobs
from fleet.client.client import AsyncFleetClient
from fleet.wire.control.jobs import Job, JobRequest
from fleet.workbench.demo.screen import Screen
from fleet.workbench.demo.timeline import Actor, Row
from fleet.workbench.local_servers.control import local_control, upload_image
from fleet.workbench.local_servers.ports import choose_ports
from fleet.workbench.local_servers.server import run_server, settings_for
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.journal import Step

OLD, NEW = "2.4.2", "2.5.0"
BOARDS: Final = ("bread-compact-wifi", "xmini-c3", "atoms3-echo-base")
BROKEN: Final = BOARDS[1]
"""The board whose new image starts on its first device only."""
EACH: Final = 6
"""Devices of a board."""
CANARY: Final = 3
_MUTE: Final = dict.fromkeys(("asr_base_url", "tts_base_url"), "http://127.0.0.1:9/v1")
"""Nobody talks here: without addresses of others the server would load its speech models."""
_OVER = ("done", "halted", "stopped")
_SHOWN = {"rollback": "its new image does not start; the boot loader starts the earlier one"}


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """Options of the command line; `folder` receives the log."""

    folder: Path


class RolloutDemo:
    """One run. `ok` says whether everything became what it should.

    Args:
        options: Of the command line.
        screen: Receives the output.
    """

    def __init__(self, options: RolloutOptions, screen: Screen) -> None:
        self._log, self._screen = options.folder / "server.log", screen
        self._devices: dict[str, list[SimDevice]] = {}
        self.checks: dict[str, bool] = {}

    @property
    def ok(self) -> bool:
        """Whether every check succeeded."""
        return bool(self.checks) and all(self.checks.values())

    async def run(self) -> None:
        """Run the demo.

        Raises:
            Unavailable: A server or a device did not start.
        """
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._screen.title("Start")
        with self._screen.live(), tempfile.TemporaryDirectory(prefix="fleet-demo-") as name:
            folder = Path(name)
            settings = {**settings_for(choose_ports(), folder / "data"), **_MUTE}
            self._report("starting `fleet up`")
            async with run_server(settings, folder, self._log, lambda _: None) as server, AsyncExitStack() as stack:
                control = await stack.enter_async_context(local_control(folder / "data"))
                await self._power_on(stack, server.ota_url)
                await self._registered(control)
                await self._story(control)
                self._screen.show_progress("stopping the server")
        self._summarise()

    async def _power_on(self, stack: AsyncExitStack, ota: str) -> None:
        self._report(f"switching on {EACH * len(BOARDS)} devices of {len(BOARDS)} boards with firmware {OLD}")
        for number, board in enumerate(BOARDS):
            profile = replace(find_profile("P1"), board=board, version=OLD)
            macs = [f"02:f1:ee:00:{number:02x}:{one:02x}" for one in range(EACH)]
            self._devices[board] = [
                SimDevice(profile, ota_url=ota, mac=mac, on_step=self._shower(mac), seed=one)
                for one, mac in enumerate(macs)
            ]
        for device in self._devices[BROKEN][1:]:
            device.board.broken_versions = frozenset({NEW})
        everyone = [one for some in self._devices.values() for one in some]
        await asyncio.gather(*(stack.enter_async_context(one.running()) for one in everyone))

    def _shower(self, mac: str) -> Any:
        def show(step: Step) -> None:
            if step.name in _SHOWN:
                self._screen.show_row(Row(Actor.DEVICE, f"{mac}: {_SHOWN[step.name]}"))

        return show

    async def _registered(self, control: AsyncFleetClient) -> None:
        """Wait until the registry has all devices, then name the canaries: the first of each board."""
        wanted = EACH * len(BOARDS)
        async with asyncio.timeout(60):
            found = 0
            while found < wanted:
                await asyncio.sleep(0.2)
                found = len((await control.send(device_calls.search("online=true", limit=100))).items)
        for some in self._devices.values():
            for one in some[:CANARY]:
                await control.send(device_calls.tag(one.mac, {"canary": "yes"}))
        self._row(f"all are connected; {CANARY} of each board have the tag canary=yes")

    async def _story(self, control: AsyncFleetClient) -> None:
        self._screen.title(f"Firmware {NEW}: the canaries first, then all others")
        new = {board: await upload_image(control, board, NEW) for board in BOARDS}
        made = [await self._begin(control, board, new[board]) for board in BOARDS]
        ended = dict(zip(BOARDS, await self._watch(control, made), strict=True))
        good = [board for board in BOARDS if board != BROKEN]
        touched = ended[BROKEN].counts.ok + ended[BROKEN].counts.error
        self.checks["the images that start are on all their devices"] = all(
            ended[board].state == "done" and ended[board].counts.ok == EACH for board in good
        )
        self.checks["the rollout of the image that does not start has halted"] = ended[BROKEN].state == "halted"
        self.checks["only the canaries of its board were touched"] = touched == CANARY
        self._screen.title(f"The earlier image back on {BROKEN}")
        await control.send(jobs.steer(ended[BROKEN].id, "stop"))
        old = await upload_image(control, BROKEN, OLD)
        back = await self._begin(control, BROKEN, old, force=True, canary=False)
        (done,) = await self._watch(control, [back])
        runs = self._running()
        self.checks["the device that ran the new image has the earlier one again"] = done.counts.ok == 1
        self.checks["every device runs what it should"] = runs == {
            **{board: {NEW: EACH} for board in good},
            BROKEN: {OLD: EACH},
        }

    async def _begin(
        self, control: AsyncFleetClient, board: str, image: int, *, force: bool = False, canary: bool = True
    ) -> int:
        first = [{"query": "tag.canary=yes", "min_success": 0.9}] if canary else []
        asked = {
            "name": f"{board} {'back' if force else 'canary'}",
            "kind": "firmware",
            "firmware": {"image": image, "force": force},
            "query": f"board={board}",
            "policy": {"stages": [*first, {"share": 1}], "rate": 20, "window": CANARY, "halt_share": 0.2},
        }
        made = await control.send(jobs.create(JobRequest.model_validate(asked)))
        self._row(f"job {made.id}: {made.name}")
        return made.id

    async def _watch(self, control: AsyncFleetClient, numbers: Sequence[int]) -> list[Job]:
        """Show jobs whenever they change, until all of them are over."""
        shown: dict[int, str] = {}
        async with asyncio.timeout(300):
            while True:
                found = [await control.send(jobs.read(one)) for one in numbers]
                for job in found:
                    line = f"job {job.id} {job.name}: {_line(job)}"
                    if shown.get(job.id) != line:
                        self._row(line)
                    shown[job.id] = line
                self._screen.show_progress("; ".join(f"job {one.id} {one.state}" for one in found))
                if all(one.state in _OVER and not one.counts.sent + one.counts.verifying for one in found):
                    for job in found:
                        for state in ("error", "skipped"):
                            for one in (await control.send(jobs.executions(job.id, state))).items:
                                self._row(f"job {job.id} {one.device}: {one.text}")
                    return found
                await asyncio.sleep(0.5)

    def _running(self) -> dict[str, dict[str, int]]:
        return {board: dict(Counter(one.board.version or OLD for one in some)) for board, some in self._devices.items()}

    def _summarise(self) -> None:
        self._screen.title("Summary")
        table = Table("board", "firmware")
        for board, versions in self._running().items():
            table.add_row(board, ", ".join(f"{count} × {version}" for version, count in versions.items()))
        self._screen.console.print(table)
        for name, good in self.checks.items():
            self._screen.console.print(Text(f"{'✔' if good else '✘'} {name}", "green" if good else "bold red"))

    def _report(self, what: str) -> None:
        self._screen.show_progress(what)
        self._screen.show_row(Row(Actor.DEMO, what))

    def _row(self, what: str) -> None:
        self._screen.show_row(Row(Actor.SERVER, what))


def _line(job: Job) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in job.counts.model_dump().items() if count)
    state = f"{job.state} ({job.reason})" if job.reason else job.state
    return f"{state}, stage {job.stage}/{len(job.policy.stages)}: {counts or 'no device'}"
