"""Texts for the small screens of devices."""

LONGEST_ALERT = 400
"""Most characters for a small screen."""


def cut_for_screen(text: str) -> str:
    """Return a text, or its beginning with an ellipsis where a small screen does not hold all of it."""
    return text if len(text) <= LONGEST_ALERT else f"{text[: LONGEST_ALERT - 1]}…"
