"""How a test of a server ends early."""


class Failed(Exception):
    """The server does not do what it must; the text says what was seen instead."""


def require(holds: object, seen: str) -> None:
    """Fail unless something holds.

    Raises:
        Failed: It does not; `seen` says what was seen instead.
    """
    if not holds:
        raise Failed(seen)
