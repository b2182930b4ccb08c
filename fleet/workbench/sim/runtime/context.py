"""What a device keeps over a restart."""

import random
from dataclasses import dataclass

from fleet.workbench.sim.network.conditions import NetworkConditions
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.profiles.timing import Range
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.turns import TurnLog
from fleet.workbench.sim.tools.board import Board


@dataclass(frozen=True, slots=True)
class DeviceContext:
    """The build, the records, the board, the change signal, the network, and the random numbers."""

    profile: Profile
    journal: Journal
    board: Board
    turns: TurnLog
    signal: ChangeSignal
    network: NetworkConditions
    chance: random.Random

    @property
    def faults(self) -> Faults:
        return self.network.faults

    def draw(self, seconds: Range) -> float:
        """Return a time from a range."""
        return self.chance.uniform(*seconds)
