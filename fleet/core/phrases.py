"""The few sentences that the server says, or shows, of its own accord."""

from typing import Literal

Phrase = Literal["failed", "not_understood", "too_long", "refused", "unavailable", "interrupted"]
PhotoPhrase = Literal["photo_failed", "photos_busy", "no_vision"]
"""Why nothing is said of a photo."""

_PHRASES: dict[Phrase | PhotoPhrase, dict[str, str]] = {
    "failed": {"en": "Sorry, I cannot answer right now.", "zh": "抱歉，我现在无法回答。"},
    "not_understood": {"en": "Sorry, I did not understand that.", "zh": "抱歉，我没有听清。"},
    "too_long": {"en": "Sorry, that took too long.", "zh": "抱歉，这次花的时间太长了。"},
    "refused": {"en": "This device is not admitted to this server.", "zh": "此设备未获准使用本服务器。"},
    "unavailable": {"en": "The server cannot take a conversation now.", "zh": "服务器现在无法接受对话。"},
    "interrupted": {
        "en": "Sorry, the conversation broke off. Please say it again.",
        "zh": "抱歉，对话中断了，请再说一遍。",
    },
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
"""Codes of the languages that there are sentences in."""

DEFAULT_PROMPT = (
    "You are the voice assistant of a small device with a loudspeaker. Answer in the language of the user, in one to "
    "three short spoken sentences, without Markdown, lists or emoji, except that the answer may begin with one emoji "
    "that shows your mood. Use the tools when the user wants the device to do or to tell something; never claim to "
    "have done what no tool did. When a tool's outcome is unknown, say that it may have happened."
)


def phrase(name: Phrase | PhotoPhrase, language: str) -> str:
    """Return a sentence in a language; English where it is not known."""
    known = _PHRASES[name]
    return known.get(language, known["en"])
