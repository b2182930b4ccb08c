"""The settings of conversations."""

from typing import Literal

from pydantic import BaseModel

from fleet.ground.settings.fields import setting


class ConversationGroup(BaseModel):
    """Language, prompt, endpointing and limits of conversations."""

    language: str = setting(
        "auto",
        "Language of the users. `auto`: recognition detects which of FLEET_LANGUAGES it is.",
        ("worker", "edge"),
        syntax="`auto`, or an ISO 639-1 code such as `en`",
        equal=True,
    )
    languages: str = setting(
        "en,zh",
        "Languages that `auto` may choose from. The server's own messages, such as that it is full, are in the "
        "language that the device reports if it is one of these, else in the first. The offline voices speak English "
        "and Chinese; the English voice reads text in other languages.",
        ("worker", "edge"),
        syntax="ISO 639-1 codes, separated by commas",
        equal=True,
    )
    wake_words: str = setting(
        "",
        "Wake words besides those of stock firmware and py-xiaozhi. The server answers a text that a device detected "
        "as a typed question, unless it is a wake word.",
        ("edge",),
        syntax="texts, separated by commas",
        unset="none",
    )
    prompt: str | None = setting(
        None,
        "System prompt of the model. The server adds language, date, time and the persona.",
        ("worker", "gateway"),
        unset="fleet's built-in prompt",
    )
    idle_seconds: float = setting(
        60.0,
        "Silence after which the server ends a device's session with a goodbye.",
        ("edge",),
        unit="seconds",
        ge=5,
        le=110,
    )
    turn_seconds: float = setting(
        60.0,
        "Longest time from an utterance to the last word that the model writes. The time of slow tools (photos, "
        "upgrades) does not count.",
        ("worker", "edge"),
        unit="seconds",
        gt=0,
        equal=True,
    )
    tool_seconds: float = setting(
        10.0,
        "Longest time to wait for the result of a tool, of a device or of the server. A device's camera gets 70 s, "
        "its firmware upgrade 300 s. For clients of the gateway see CLIENT_TOOL_TIMEOUT.",
        ("worker", "gateway"),
        unit="seconds",
        gt=0,
    )
    endpoint_ms: int = setting(
        600,
        "Silence that ends an utterance in the listening modes auto and realtime, where the device does not report "
        "the end. A lower value answers sooner, but may cut off users who pause to think.",
        ("edge",),
        unit="milliseconds",
        ge=200,
        le=3000,
    )
    pause_ms: int = setting(
        240,
        "Silence after which recognition starts, before the end of the utterance is certain. If speech goes on, its "
        "result is discarded. With FLEET_ENDPOINT_MS or more it never starts early, which saves CPU time.",
        ("edge",),
        unit="milliseconds",
        ge=100,
    )
    voice_bitrate: Literal["24k", "32k"] = setting(
        "32k",
        "Bits a second of the voice that is sent to devices. Both sound equally good; `24k` takes a quarter less of "
        "the device's downlink, and twice as much CPU time to encode.",
        ("edge",),
    )
    unheard_reply: Literal["spoken", "shown", "off"] = setting(
        "spoken",
        "Reply to a push-to-talk press without speech: `spoken` speaks a short sentence, `shown` shows it on the "
        "screen, `off` sends nothing. A press of less than 0.3 s gets no reply.",
        ("edge",),
    )
    history_messages: int = setting(
        20, "How many of the newest messages of a device's history the model gets; 0 for none.", ("worker",), ge=0
    )
    history_seconds: int = setting(
        3600, "How long a device's history is kept after its last turn.", ("worker",), unit="seconds", ge=60
    )
