"""Plays the scenes: acts as the user of the device and records the results."""

import asyncio
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.workbench.demo.results import SceneResult, TurnResult
from fleet.workbench.demo.screen import Screen
from fleet.workbench.demo.script import Scene, ScriptLine
from fleet.workbench.demo.stages import StageTimer, split_stages
from fleet.workbench.demo.timeline import PROGRESS, Actor, Row, row_of_log, row_of_step
from fleet.workbench.local_servers.log_line import LogLine
from fleet.workbench.sim.audio.recording import read_recording
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.records.journal import Step
from fleet.workbench.sim.tools.board import Board

TURN_SECONDS = 40.0
_PAUSE_SECONDS = 0.6
"""A user pauses before speaking."""
_BYTES_A_SECOND = 32_000


class ScenePlayer:
    """Plays scenes, shows their steps and returns their results.

    Args:
        screen: Shows the steps.
        folder: For the WAV files of the answers.
    """

    def __init__(self, screen: Screen, folder: Path) -> None:
        self._screen = screen
        self._folder = folder
        self._timer = StageTimer()
        self._board: Board | None = None
        self._volume = 0

    def on_log_line(self, line: LogLine) -> None:
        """Show a line of the server's log."""
        self._timer.add(line)
        self._show_step(line.message, row_of_log(line))

    def on_step(self, step: Step) -> None:
        """Show a step of the device."""
        self._show_step(step.name, row_of_step(step))
        if self._board and self._board.volume != self._volume:
            self._show(Row(Actor.DEVICE, f"volume is {self._board.volume} % now", f"it was {self._volume} %"))
            self._volume = self._board.volume

    async def play(self, device: SimDevice, scene: Scene) -> SceneResult:
        """Hold one conversation and return its result.

        Raises:
            Unavailable: The device could not open a session.
        """
        self._screen.title(scene.title)
        self._board, self._volume = device.board, scene.volume
        device.board.volume, device.board.battery = scene.volume, scene.battery
        self._show(Row(Actor.DEVICE, f"volume {scene.volume} %, battery {scene.battery} %"))
        self._show(Row(Actor.USER, f"“{scene.wake_word}”", "wake word"))
        if not await device.wake(scene.wake_word):
            raise Unavailable("the device could not open a session with the server")
        result = SceneResult(scene, scene.volume)
        for line in scene.lines:
            answer = await self._say(device, line)
            result.answers.append(answer)
            if answer.outcome == "not listening":
                break
        result.volume = device.board.volume
        if device.session:
            await device.hang_up()
        return result

    async def _say(self, device: SimDevice, line: ScriptLine) -> TurnResult:
        pcm = await asyncio.to_thread(read_recording, line.recording)
        self._screen.show_progress(f"the user speaks: “{line.text}”")
        await asyncio.sleep(_PAUSE_SECONDS)
        self._timer.restart()
        self._screen.console.print()
        self._show(Row(Actor.USER, f"“{line.text}”", f"recording, {len(pcm) / _BYTES_A_SECOND:.1f} s"))
        turn = await device.say(pcm, TURN_SECONDS)
        answer = TurnResult(
            line,
            self._folder / f"{line.language}-{line.name}.wav",
            turn.outcome,
            turn.transcript,
            turn.reply,
            tuple(turn.calls),
            self._timer.read(turn.latencies),
            filled=self._timer.filled,
        )
        sound = device.heard_wav(turn.index)
        await asyncio.to_thread(answer.wav.write_bytes, sound)
        if turn.outcome == "answered":
            self._screen.show_stages(split_stages(answer.stages))
        else:
            self._show(Row(Actor.PROBLEM, f"the turn ended as “{turn.outcome}”"))
        return answer

    def _show_step(self, name: str, row: Row | None) -> None:
        if row:
            self._show(row)
        if name in PROGRESS:
            self._screen.show_progress(PROGRESS[name])

    def _show(self, row: Row) -> None:
        self._screen.show_row(row)
