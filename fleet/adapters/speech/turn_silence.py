"""Ends of turns by silence alone: no pause says more than another one."""

from fleet.core.ports import UNDECIDED


class SilenceTurnDetector:
    """Has no opinion, so that only the middle wait ends utterances."""

    async def finished(self, pcm: bytes) -> float:
        """Return that it cannot tell; see `fleet.core.ports.TurnDetector`."""
        return UNDECIDED

    async def aclose(self) -> None:
        """Nothing is open."""
