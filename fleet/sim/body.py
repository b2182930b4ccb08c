"""The parts of one boot, as those see them who move them."""

from typing import Protocol

from fleet.sim.channel import Channel
from fleet.sim.gaps import Gaps
from fleet.sim.intake import Intake
from fleet.sim.main_loop import MainLoop
from fleet.sim.microphone import Microphone
from fleet.sim.playback import Playback
from fleet.sim.references import References
from fleet.sim.screen import Screen
from fleet.sim.state import Machine


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
