"""The settings of conversations."""

from typing import Literal

from pydantic import BaseModel

from fleet.ground.settings.fields import setting


class Conversation(BaseModel):
    """How a conversation goes."""

    language: str = setting(
        "auto",
        "Language that people speak. `auto`: recognition finds out which of FLEET_LANGUAGES it is.",
        ("worker", "edge"),
        form="`auto`, or an ISO 639-1 code such as `en`",
        same=True,
    )
    languages: str = setting(
        "en,zh",
        "Languages that `auto` may choose from. What the server itself says, such as that it is full, is in the one "
        "that the device reports, if it is one of these, else in the first. The offline voices speak English and "
        "Chinese; text in another language is read by the English one.",
        ("worker", "edge"),
        form="ISO 639-1 codes, separated by commas",
        same=True,
    )
    wake_words: str = setting(
        "",
        "Wake words besides those of stock firmware and py-xiaozhi. A text that a device detected is answered as a "
        "typed question unless it is a wake word.",
        ("edge",),
        form="texts, separated by commas",
        without="none",
    )
    prompt: str | None = setting(
        None,
        "System prompt of the model. Language, date and time, and the role that is played are added to it.",
        ("worker", "gateway"),
        without="a short one of fleet's own",
    )
    idle_seconds: float = setting(
        60.0,
        "Silence after which the server says goodbye to a device and ends its session.",
        ("edge",),
        unit="seconds",
        ge=5,
        le=110,
    )
    turn_seconds: float = setting(
        60.0,
        "Longest time from an utterance to the last written word of its answer. The time of slow tools (photos, "
        "upgrades) does not count.",
        ("worker", "edge"),
        unit="seconds",
        gt=0,
        same=True,
    )
    tool_seconds: float = setting(
        10.0,
        "Longest time to wait for the answer of a device's tool or of one of the server's. A device's camera gets "
        "70 s, its firmware upgrade 300 s. Clients of the gateway have CLIENT_TOOL_TIMEOUT.",
        ("worker", "gateway"),
        unit="seconds",
        gt=0,
    )
    endpoint_ms: int = setting(
        600,
        "Silence that ends an utterance where the device does not say so itself (its modes auto and realtime). Less "
        "answers sooner, and cuts off who pauses to think.",
        ("edge",),
        unit="milliseconds",
        ge=200,
        le=3000,
    )
    pause_ms: int = setting(
        240,
        "Silence after which recognition begins, before it is sure that the utterance has ended; what was recognised "
        "is thrown away when speech goes on. As long as FLEET_ENDPOINT_MS or longer: never, which saves work.",
        ("edge",),
        unit="milliseconds",
        ge=100,
    )
    unheard_reply: Literal["spoken", "shown", "off"] = setting(
        "spoken",
        "What follows a push-to-talk press in which nothing was heard: `spoken` speaks a short sentence, `shown` shows "
        "it on the screen, `off` does nothing. A press of less than 0.3 s gets nothing.",
        ("edge",),
    )
    history_messages: int = setting(
        20, "Messages of a device's history that the model is given, the newest; 0 for none.", ("worker",), ge=0
    )
    history_seconds: int = setting(
        3600, "How long a device's history is kept after its last turn.", ("worker",), unit="seconds", ge=60
    )
