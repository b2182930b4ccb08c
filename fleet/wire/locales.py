"""The language that a device says it has. Strangers write it, and it goes as far as speech engines."""

import re

_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}", re.ASCII)


def read_locale(text: str) -> str:
    """Return a locale such as `zh-CN` without the blanks around it; empty for any other text."""
    found = text.strip()
    return found if _LOCALE.fullmatch(found) else ""
