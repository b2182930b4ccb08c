"""Runs the demo, from the first process to the verdict."""

import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.text import Text

from fleet.ground.errors import writing
from fleet.roles.edge.transport.datagrams import has_native
from fleet.workbench.demo.figures import write_figures
from fleet.workbench.demo.memory import memory_of_children
from fleet.workbench.demo.results import DemoResult, SceneResult
from fleet.workbench.demo.scene_player import ScenePlayer
from fleet.workbench.demo.screen import Screen
from fleet.workbench.demo.script import SCENES, Language
from fleet.workbench.demo.separate_servers import run_separate_servers
from fleet.workbench.demo.summary import files_table, show_summary
from fleet.workbench.demo.timeline import Actor, Row
from fleet.workbench.demo.transcription import transcribe_answers
from fleet.workbench.demo.verdict import judge
from fleet.workbench.local_servers.ports import choose_ports
from fleet.workbench.local_servers.server import Server, run_server, settings_for
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.runtime.state import State

MACS: Final[Mapping[Language, str]] = {"en": "02:f1:ee:70:de:30", "zh": "02:f1:ee:70:de:31"}
"""Of a device in each language; locally administered, so that no real board has one."""
_LOCALES: Final[Mapping[Language, str]] = {"en": "en-US", "zh": "zh-CN"}
"""What firmware that was built for a language reports."""
_EXAMPLE = SCENES["en"].lines[0].recording


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of the command line; `folder` receives answers and logs, `json` the figures."""

    languages: Sequence[Language]
    real: bool
    keep: bool
    folder: Path
    json: Path | None = None


class DemoRun:
    """One run of the demo.

    Args:
        options: Of the command line.
        screen: Receives the output.
    """

    def __init__(self, options: DemoOptions, screen: Screen) -> None:
        self._options = options
        self._screen = screen
        self._player = ScenePlayer(screen, options.folder)
        self._log = options.folder / "server.log"
        self.ok = False

    async def run(self) -> None:
        """Run the demo and set `ok` if it succeeded; with `keep`, wait until cancelled.

        Raises:
            ConfigError: A program is not installed, or the folder cannot be written.
            Unavailable: A server ended or did not start.
        """
        await asyncio.to_thread(_clear, self._options.folder)
        with self._screen.live():
            async with self._server() as server:
                await self._play_scenes(server)
                if self._options.keep:
                    await self._keep_running(server)
                self._screen.show_progress("stopping the server")

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Server]:
        self._screen.title("Start")
        ports = choose_ports()
        with tempfile.TemporaryDirectory(prefix="fleet-demo-") as name:
            folder = Path(name)
            settings = settings_for(ports, folder / "data")
            async with AsyncExitStack() as stack:
                if self._options.real:
                    servers = run_separate_servers(ports, folder, self._options.folder, self._report)
                    settings |= await stack.enter_async_context(servers)
                self._report("starting `fleet up` and loading the speech models")
                server = run_server(settings, folder, self._log, self._player.on_log_line)
                yield await stack.enter_async_context(server)

    async def _play_scenes(self, server: Server) -> None:
        self._screen.show_row(Row(Actor.SERVER, f"up; devices boot from {server.ota_url}"))
        form = "the native part" if has_native() else "Python alone (the native part is not installed)"
        self._screen.show_row(Row(Actor.SERVER, f"audio socket: {form}"))
        scenes, violations, speaking = list[SceneResult](), list[str](), False
        for language in self._options.languages:
            profile = replace(find_profile("P1"), language=_LOCALES[language])
            device = SimDevice(profile, ota_url=server.ota_url, mac=MACS[language], on_step=self._player.on_step)
            async with device.running():
                scenes.append(await self._player.play(device, SCENES[language]))
                speaking |= device.state is State.SPEAKING
            violations += [f"{one.rule} ({one.clause}): {one.detail}" for one in device.report.violations]
        memory = await asyncio.to_thread(memory_of_children, os.getpid())
        answers = [answer for scene in scenes for answer in scene.answers]
        self._screen.title("Summary")
        self._screen.show_progress("transcribing the answers")
        await transcribe_answers(answers)
        result = DemoResult(scenes, violations, speaking)
        checks = judge(result)
        self.ok = all(check.ok for check in checks)
        if self._options.json:
            await asyncio.to_thread(write_figures, self._options.json, result, checks, memory)
        show_summary(self._screen.console, scenes, checks)
        self._screen.console.print(files_table(memory, [answer.wav for answer in answers], self._log))
        good, bad = Text("The demo succeeded.", "bold green"), Text("The demo FAILED; see ✘ above.", "bold red")
        self._screen.console.print(good if self.ok else bad)

    async def _keep_running(self, server: Server) -> None:
        command = f"{Path(sys.executable).parent / 'fleet'} sim --ota {server.ota_url}"
        self._screen.title("The server keeps running; talk to it from another terminal. Ctrl-C stops it.")
        for what in ("--mic", '--text "turn on the lamp"', f"--wav {shlex.quote(str(_EXAMPLE))}"):
            self._screen.console.print(f"  {command} {what}", soft_wrap=True)
        self._screen.show_progress("the server is up; Ctrl-C stops it")
        await asyncio.Event().wait()

    def _report(self, what: str) -> None:
        self._screen.show_progress(what)
        self._screen.show_row(Row(Actor.DEMO, what))


def _clear(folder: Path) -> None:
    """Make the folder, and delete the answers and logs of an earlier run.

    Raises:
        ConfigError: The folder cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in ("*.wav", "*.log"):
            for old in folder.glob(pattern):
                old.unlink()
        (folder / "server.log").touch()
