"""The whole demo, from the first process to the verdict."""

import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from fleet.ground.errors import ConfigError
from fleet.workbench.demo.acts import Evidence
from fleet.workbench.demo.director import Director
from fleet.workbench.demo.hearing import transcribe_answers
from fleet.workbench.demo.memory import memory_started_by
from fleet.workbench.demo.real import run_real_servers
from fleet.workbench.demo.screen import Screen
from fleet.workbench.demo.script import SCENES, Language
from fleet.workbench.demo.summary import facts, show_summary
from fleet.workbench.demo.timeline import Row, Who
from fleet.workbench.demo.verdict import judge
from fleet.workbench.local_servers.ports import choose_ports
from fleet.workbench.local_servers.server import Server, run_server, settings_for
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.runtime.state import State

MAC = "02:f1:ee:70:de:30"
"""Locally administered, so that no real board has it."""
_EXAMPLE = SCENES["en"].lines[0].recording


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asks for; `folder` is where answers and logs go."""

    languages: Sequence[Language]
    real: bool
    keep: bool
    folder: Path


class Show:
    """One run of the demo.

    Args:
        wishes: What is to be shown.
        screen: Where to.
    """

    def __init__(self, wishes: Wishes, screen: Screen) -> None:
        self._wishes = wishes
        self._screen = screen
        self._director = Director(screen, wishes.folder)
        self._log = wishes.folder / "server.log"
        self.ok = False

    async def run(self) -> None:
        """Run it; `ok` then says whether it succeeded. With `keep` it ends when it is cancelled.

        Raises:
            ConfigError: Something is not installed, or the folder cannot be written.
            Unavailable: A server ended or did not start.
        """
        await asyncio.to_thread(_clear, self._wishes.folder)
        with self._screen.live():
            async with self._server() as server:
                await self._perform(server)
                if self._wishes.keep:
                    await self._stay(server)
                self._screen.doing("stopping the server")

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Server]:
        self._screen.title("Start")
        ports = choose_ports()
        with tempfile.TemporaryDirectory(prefix="fleet-demo-") as name:
            folder = Path(name)
            settings = settings_for(ports, folder / "data")
            async with AsyncExitStack() as stack:
                if self._wishes.real:
                    servers = run_real_servers(ports, folder, self._wishes.folder, self._doing)
                    settings |= await stack.enter_async_context(servers)
                self._doing("starting `fleet up` and loading the speech models")
                server = run_server(settings, folder, self._log, self._director.take_log)
                yield await stack.enter_async_context(server)

    async def _perform(self, server: Server) -> None:
        self._screen.show(Row(Who.SERVER, f"up; devices boot from {server.ota_url}"))
        profile = find_profile("P1")
        device = SimDevice(profile, ota_url=server.ota_url, mac=MAC, on_step=self._director.take_step)
        async with device.running():
            acts = [await self._director.play(device, SCENES[language]) for language in self._wishes.languages]
            speaking = device.state is State.SPEAKING
        memory = await asyncio.to_thread(memory_started_by, os.getpid())
        answers = [answer for act in acts for answer in act.answers]
        self._screen.title("Summary")
        self._screen.doing("listening to the answers")
        await transcribe_answers(answers)
        violations = [f"{one.rule} ({one.clause}): {one.detail}" for one in device.report.violations]
        checks = judge(Evidence(acts, violations, speaking))
        self.ok = all(check.ok for check in checks)
        show_summary(self._screen.console, acts, checks)
        self._screen.console.print(facts(memory, [answer.wav for answer in answers], self._log))
        good, bad = Text("The demo succeeded.", "bold green"), Text("The demo FAILED; see ✘ above.", "bold red")
        self._screen.console.print(good if self.ok else bad)

    async def _stay(self, server: Server) -> None:
        command = f"{Path(sys.executable).parent / 'fleet'} sim --ota {server.ota_url}"
        self._screen.title("The server goes on; talk to it from another terminal. Ctrl-C ends it.")
        for what in ("--mic", '--text "turn on the lamp"', f"--wav {shlex.quote(str(_EXAMPLE))}"):
            self._screen.console.print(f"  {command} {what}", soft_wrap=True)
        self._screen.doing("the server is up; Ctrl-C ends it")
        await asyncio.Event().wait()

    def _doing(self, what: str) -> None:
        self._screen.doing(what)
        self._screen.show(Row(Who.DEMO, what))


def _clear(folder: Path) -> None:
    """Make the folder, without the answers and logs of an earlier run.

    Raises:
        ConfigError: It belongs to somebody else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in ("*.wav", "*.log"):
            for old in folder.glob(pattern):
                old.unlink()
        (folder / "server.log").touch()
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror}") from error
