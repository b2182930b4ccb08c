"""Plays the scenes: what the user does with the device, and what is recorded."""

import asyncio
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.workbench.demo.acts import Act, Answer
from fleet.workbench.demo.screen import Screen
from fleet.workbench.demo.script import Line, Scene
from fleet.workbench.demo.stages import Stopwatch, parts
from fleet.workbench.demo.timeline import DOING, Row, Who, row_of_log, row_of_step
from fleet.workbench.local_servers.log_line import LogLine
from fleet.workbench.sim.audio.recording import read_recording
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.records.journal import Step
from fleet.workbench.sim.tools.board import Board

TURN_SECONDS = 40.0
_PAUSE = 0.6
"""A person pauses before speaking."""
_BYTES_A_SECOND = 32_000


class Director:
    """Shows what happens, and remembers it.

    Args:
        screen: Where to.
        folder: For the answers' WAV files.
    """

    def __init__(self, screen: Screen, folder: Path) -> None:
        self._screen = screen
        self._folder = folder
        self._stopwatch = Stopwatch()
        self._board: Board | None = None
        self._volume = 0

    def take_log(self, line: LogLine) -> None:
        """Take a line of the server's log."""
        self._stopwatch.take(line)
        self._follow(line.message, row_of_log(line))

    def take_step(self, step: Step) -> None:
        """Take a step of the device."""
        self._follow(step.name, row_of_step(step))
        if self._board and self._board.volume != self._volume:
            self._show(Row(Who.DEVICE, f"volume is {self._board.volume} % now", f"it was {self._volume} %"))
            self._volume = self._board.volume

    async def play(self, device: SimDevice, scene: Scene) -> Act:
        """Hold one conversation and return its result.

        Raises:
            Unavailable: The device could not be woken.
        """
        self._screen.title(scene.title)
        self._board, self._volume = device.board, scene.volume
        device.board.volume, device.board.battery = scene.volume, scene.battery
        self._show(Row(Who.DEVICE, f"volume {scene.volume} %, battery {scene.battery} %"))
        self._show(Row(Who.USER, f"“{scene.wake_word}”", "wake word"))
        if not await device.wake(scene.wake_word):
            raise Unavailable("the device could not open a session with the server")
        act = Act(scene, scene.volume)
        for line in scene.lines:
            answer = await self._say(device, line)
            act.answers.append(answer)
            if answer.outcome == "not listening":
                break
        act.volume = device.board.volume
        if device.session:
            await device.hang_up()
        return act

    async def _say(self, device: SimDevice, line: Line) -> Answer:
        pcm = await asyncio.to_thread(read_recording, line.recording)
        self._screen.doing(f"the user speaks: “{line.text}”")
        await asyncio.sleep(_PAUSE)
        self._stopwatch.restart()
        self._screen.console.print()
        self._show(Row(Who.USER, f"“{line.text}”", f"recording, {len(pcm) / _BYTES_A_SECOND:.1f} s"))
        turn = await device.say(pcm, TURN_SECONDS)
        answer = Answer(
            line,
            self._folder / f"{line.language}-{line.name}.wav",
            turn.outcome,
            turn.transcript,
            turn.reply,
            tuple(turn.calls),
            self._stopwatch.read(turn.latencies),
        )
        sound = device.heard_wav(turn.index)
        await asyncio.to_thread(answer.wav.write_bytes, sound)
        if turn.outcome == "answered":
            self._screen.show_parts(parts(answer.stages))
        else:
            self._show(Row(Who.PROBLEM, f"the turn ended as “{turn.outcome}”"))
        return answer

    def _follow(self, name: str, row: Row | None) -> None:
        if row:
            self._show(row)
        if name in DOING:
            self._screen.doing(DOING[name])

    def _show(self, row: Row) -> None:
        self._screen.show(row)
