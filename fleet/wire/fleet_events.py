"""The data of the events that control collects, as they stand in a shard's stream (docs/operating/events.md).

The events of devices, sessions and calls are written by `functions.lua`; those of turns have these forms. Readers skip
unknown fields, so that two versions can run side by side.
"""

from msgspec import Struct


class TurnData(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of `turn.answered`, `turn.failed`, `turn.interrupted` and `turn.shortened`.

    `shortened` follows `answered` if the user interrupted the speech of an answer that was written already.
    """

    turn: str
    session: str = ""
    agent: str = ""
    """Name of the agent that answered."""
    language: str = ""
    typed: bool = False
    """Whether the user's words came as text."""
    user: str = ""
    """What the user said, and what was answered: only where conversations are recorded."""
    answer: str = ""
    speech_ms: int = 0
    """Length of the user's speech."""
    stages: dict[str, int] = {}
    """Milliseconds: `heard` from the last speech to the recognised text; from there in the worker `first_token`,
    `first_sentence`, `written`."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were called."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class SpokenData(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of `turn.spoken`: the edge has ended to speak the answer."""

    turn: str
    session: str = ""
    first_audio_ms: int = 0
    """From the user's last speech to the first packet of the answer; 0 if unknown."""
    spoken_ms: int = 0
    """Length of the answer's speech."""
    interrupted: bool = False
    """Whether the user interrupted it, perhaps before its first word."""
