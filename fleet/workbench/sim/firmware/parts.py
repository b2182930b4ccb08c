"""The parts of one boot, as the application sees them."""

from typing import Protocol

from fleet.workbench.sim.audio.echo_references import EchoReferences
from fleet.workbench.sim.audio.gaps import GapAudit
from fleet.workbench.sim.audio.microphone import Microphone
from fleet.workbench.sim.audio.playback import Playback
from fleet.workbench.sim.audio.playback_gate import PlaybackGate
from fleet.workbench.sim.connection.audio_channel import AudioChannel
from fleet.workbench.sim.firmware.screen import Screen
from fleet.workbench.sim.runtime.main_loop import MainLoop
from fleet.workbench.sim.runtime.state import StateMachine


class DeviceParts(Protocol):
    """State, main loop, channel, microphone, speaker and screen."""

    main_loop: MainLoop
    machine: StateMachine
    channel: AudioChannel
    microphone: Microphone
    references: EchoReferences
    playback: Playback
    gate: PlaybackGate
    gaps: GapAudit
    screen: Screen
