"""Text of strangers in a terminal: devices, models and servers may write anything into what operators read."""

from rich.text import Text


def visible(text: str) -> str:
    """Return a text with all that a terminal would act on, or not show, as its escape: `\\x1b`, `\\u202e`.

    So are line ends: whoever wrote the text shall write no line of ours.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def cell(text: str, style: str = "") -> Text:
    """Return a text as it is written, for rich, which reads a plain string as markup."""
    return Text(visible(text), style)
