"""How a check ends early."""


class Failed(Exception):
    """The server does not do what it must; the text says what was seen instead."""


class NotApplicable(Exception):
    """This server, device or setup cannot be judged so; the text says why."""


def require(holds: object, seen: str) -> None:
    """Fail unless something holds.

    Raises:
        Failed: It does not; `seen` says what was seen instead.
    """
    if not holds:
        raise Failed(seen)


def span(seconds: float) -> str:
    """Return a time as people read it."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
