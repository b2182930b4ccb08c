"""The fixed sentences that the server speaks or shows."""

import re
from typing import Literal, get_args

Phrase = Literal[
    "failed",
    "not_understood",
    "not_heard",
    "too_long",
    "text_too_long",
    "refused",
    "unavailable",
    "interrupted",
    "error",
]
HelloRefusal = Literal["refused", "unavailable"]
"""The phrases that refuse a hello."""
PHRASES: tuple[Phrase, ...] = get_args(Phrase)
PhotoPhrase = Literal["photo_failed", "photos_busy", "no_vision"]
"""Why a photo was not explained."""

_PHRASES: dict[Phrase | PhotoPhrase, dict[str, str]] = {
    "failed": {"en": "Sorry, I cannot answer right now.", "zh": "抱歉，我现在无法回答。"},
    "not_understood": {"en": "Sorry, I did not understand that.", "zh": "抱歉，我没有听清。"},
    "not_heard": {"en": "I did not hear you.", "zh": "我没有听到你说话。"},
    "too_long": {"en": "Sorry, that took too long.", "zh": "抱歉，这次花的时间太长了。"},
    "text_too_long": {"en": "Sorry, that text is too long.", "zh": "抱歉，输入的文字太长了。"},
    "refused": {"en": "This device is not admitted to this server.", "zh": "此设备未获准使用本服务器。"},
    "unavailable": {"en": "The server cannot take a conversation now.", "zh": "服务器现在无法接受对话。"},
    "interrupted": {
        "en": "Sorry, the conversation broke off. Please say it again.",
        "zh": "抱歉，对话中断了，请再说一遍。",
    },
    # The status of an alert: firmware's own word (main/assets/locales, ERROR).
    "error": {"en": "Error", "zh": "错误"},
    "photo_failed": {
        "en": "The photo could not be looked at just now; try again later.",
        "zh": "现在无法查看这张照片，请稍后再试。",
    },
    "photos_busy": {
        "en": "The server has too many photos to look at; try again in a moment.",
        "zh": "服务器正在查看太多照片，请稍后再试。",
    },
    "no_vision": {
        "en": "No model that sees is set up on the server.",
        "zh": "服务器没有配置可以看照片的模型。",
    },
}

LANGUAGES = frozenset(_PHRASES["failed"])
"""Codes of the languages of the sentences."""


def phrase(name: Phrase | PhotoPhrase, language: str) -> str:
    """Return a sentence in a language; English where it is not known."""
    known = _PHRASES[name]
    return known.get(language, known["en"])


def choose_language(setting: str, choices: str, reported: str) -> str:
    """Return the language of fixed sentences before the user has spoken.

    Args:
        setting: The language that people speak, or `auto`.
        choices: Languages that `auto` may choose from, separated by commas.
        reported: The language that the device sends, such as `zh-CN`; any text, also empty.
    """
    if setting != "auto":
        return setting
    known = [code for code in (part.strip() for part in choices.split(",")) if code]
    own = re.split("[-_]", reported.strip().lower(), maxsplit=1)[0]
    return own if own in known else next(iter(known), "en")
