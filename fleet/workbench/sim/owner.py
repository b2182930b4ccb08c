"""What of a device outlives a restart."""

import random
from dataclasses import dataclass

from fleet.workbench.sim.board import Board
from fleet.workbench.sim.faults import Faults
from fleet.workbench.sim.journal import Journal
from fleet.workbench.sim.network import Network
from fleet.workbench.sim.profile import Profile, Range
from fleet.workbench.sim.turns import TurnLog
from fleet.workbench.sim.watch import Signal


@dataclass(frozen=True, slots=True)
class Owner:
    """The build, the records, the board's state, who waits for news, the network, and the dice."""

    profile: Profile
    journal: Journal
    board: Board
    turns: TurnLog
    signal: Signal
    network: Network
    chance: random.Random

    @property
    def faults(self) -> Faults:
        return self.network.faults

    def draw(self, seconds: Range) -> float:
        """Return a time from a range."""
        return self.chance.uniform(*seconds)
