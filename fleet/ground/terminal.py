"""Untrusted text in a terminal: devices, models and servers may send control characters to an operator's screen."""

from rich.text import Text


def visible(text: str) -> str:
    """Return a text with control and invisible characters escaped: `\\x1b`, `\\u202e`.

    Line ends are escaped too, so that the text cannot fake a line of output.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def cell(text: str, style: str = "") -> Text:
    """Return a text for rich without markup; rich would read a plain string as markup."""
    return Text(visible(text), style)
