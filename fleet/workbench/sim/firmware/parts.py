"""The parts of one boot, as those see them who move them."""

from typing import Protocol

from fleet.workbench.sim.audio.echo_references import References
from fleet.workbench.sim.audio.gaps import Gaps
from fleet.workbench.sim.audio.microphone import Microphone
from fleet.workbench.sim.audio.playback import Playback
from fleet.workbench.sim.audio.playback_gate import Intake
from fleet.workbench.sim.connection.audio_channel import Channel
from fleet.workbench.sim.firmware.screen import Screen
from fleet.workbench.sim.runtime.main_loop import MainLoop
from fleet.workbench.sim.runtime.state import Machine


class Body(Protocol):
    """State, main loop, channel, microphone, speaker and screen."""

    main_loop: MainLoop
    machine: Machine
    channel: Channel
    microphone: Microphone
    references: References
    playback: Playback
    intake: Intake
    gaps: Gaps
    screen: Screen
