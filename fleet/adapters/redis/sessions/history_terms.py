"""How long a history is kept: by the settings, or by an agent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HistoryTerms:
    """How long a history is kept after its last turn, and whether its conversations are noted for `Memories`."""

    seconds: int
    remembers: bool = False

    @property
    def text(self) -> str:
        """As it is stored with the journal."""
        return f"{self.seconds} {self.remembers:d}"

    @classmethod
    def read(cls, text: str) -> "HistoryTerms | None":
        seconds, _, remembers = text.partition(" ")
        return cls(int(seconds), remembers == "1") if seconds else None
