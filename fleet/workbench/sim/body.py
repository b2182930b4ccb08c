"""The parts of one boot, as those see them who move them."""

from typing import Protocol

from fleet.workbench.sim.channel import Channel
from fleet.workbench.sim.gaps import Gaps
from fleet.workbench.sim.intake import Intake
from fleet.workbench.sim.main_loop import MainLoop
from fleet.workbench.sim.microphone import Microphone
from fleet.workbench.sim.playback import Playback
from fleet.workbench.sim.references import References
from fleet.workbench.sim.screen import Screen
from fleet.workbench.sim.state import Machine


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
