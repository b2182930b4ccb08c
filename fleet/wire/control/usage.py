"""What devices used."""

from datetime import date

from fleet.wire.control.shapes import Shape


class Usage(Shape):
    """Sums over a time. `day`, `device` and `agent` are null unless they were asked for.

    A turn counts in `turns`, and also in `failed` (it ended with an apology) or `interrupted`. `speech_ms` is what
    users said, `spoken_ms` what was spoken to them.
    """

    day: date | None = None
    device: str | None = None
    agent: str | None = None
    sessions: int
    turns: int
    failed: int
    interrupted: int
    tool_calls: int
    speech_ms: int
    spoken_ms: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int


class UsageList(Shape):
    """Sums; `truncated` if there are more than 1,000."""

    items: list[Usage]
    truncated: bool = False
