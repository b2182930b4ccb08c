"""The settings of conversations."""

import re
from typing import Final, Literal

from pydantic import field_validator

from fleet.ground.settings.fields import SettingGroup, setting

_RULES: Final = re.compile(r"(?:\s*(?:allow|ask|deny)\s+[^\s,]{1,256}\s*(?:,|$)){0,64}")


class ConversationGroup(SettingGroup):
    """Language, prompt, endpointing and limits of conversations."""

    title = "Conversations"

    language: str = setting("auto", ("worker", "edge"), syntax="`auto`, or an ISO 639-1 code such as `en`", equal=True)
    """Language of the users. `auto`: recognition detects which of FLEET_LANGUAGES it is."""
    languages: str = setting("en,zh", ("worker", "edge"), syntax="ISO 639-1 codes, separated by commas", equal=True)
    """Languages that `auto` may choose from. The server's own messages, such as that it is full, are in the language
    that the device reports if it is one of these, else in the first. The offline voices speak English and Chinese; the
    English voice reads text in other languages."""
    wake_words: str = setting("", ("edge",), syntax="texts, separated by commas", unset="none")
    """Wake words besides those of stock firmware and py-xiaozhi. The server answers a text that a device detected as a
    typed question, unless it is a wake word."""
    prompt: str | None = setting(None, ("worker", "gateway"), unset="fleet's built-in prompt")
    """System prompt of the model. The server adds language, date, time and the persona."""
    idle_seconds: float = setting(60.0, ("edge",), unit="seconds", ge=5, le=110)
    """Silence after which the server ends a device's session with a goodbye."""
    turn_seconds: float = setting(60.0, ("worker", "edge"), unit="seconds", gt=0, equal=True)
    """Longest time from an utterance to the last word that the model writes. The time of slow tools (photos, upgrades)
    does not count."""
    tool_seconds: float = setting(10.0, ("worker", "gateway"), unit="seconds", gt=0)
    """Longest time to wait for the result of a tool, of a device or of the server. A device's camera gets 70 s, its
    firmware upgrade 300 s. For clients of the gateway see CLIENT_TOOL_TIMEOUT."""
    tool_policy: str = setting(
        "",
        ("worker", "gateway"),
        syntax="rules, separated by commas: `allow`, `ask` or `deny`, and `read`, `act`, `dangerous` or a tool's name",
        unset="every tool that the model may see is allowed",
        equal=True,
    )
    """Which tools the model may call, for example `deny self.camera.*, ask dangerous`; the first rule that fits a tool
    counts, and `*` in a name stands for any text. `ask`: the server asks the user first, and only a spoken yes lets the
    call through. `deny`: the model does not see the tool. `dangerous` are restart, upgrade, assets, camera, snapshot,
    and tools of boards that fleet does not know."""
    endpoint_ms: int = setting(600, ("edge",), unit="milliseconds", ge=200, le=3000)
    """Silence that ends an utterance in the listening modes auto and realtime, where the device does not report the
    end, if its sound and its text do not agree whether it is finished. If both say that it is, it ends sooner. A lower
    value answers sooner, but may cut off users who pause to think."""
    endpoint_max_ms: int = setting(1200, ("edge",), unit="milliseconds", ge=200, le=3000)
    """Silence that ends an utterance whose sound and text are both unfinished."""
    pause_ms: int = setting(60, ("edge",), unit="milliseconds", ge=60)
    """Silence after which the edge recognises the utterance so far, and judges whether it is finished. If speech goes
    on, the results are discarded. With FLEET_ENDPOINT_MS or more it never does so, which saves CPU time: then only
    FLEET_ENDPOINT_MS ends utterances."""
    turn_detector: Literal["smart-turn", "silence"] = setting("smart-turn", ("edge",))
    """What judges the sound of a pause: the model smart-turn, or nothing: then every utterance ends after
    FLEET_ENDPOINT_MS."""
    interruption: Literal["off", "low", "normal", "high"] = setting("normal", ("edge",))
    """What interrupts an answer where the user may speak over it (listening mode realtime). Speech first holds the
    answer, for at most 0.9 s, and its text decides: noises, "uh-huh" and the like, and the answer's own words let it go
    on. `normal`: other words interrupt, but a mumbled syllable does not. `low`: only a keyword, or at least three words
    or four Chinese characters. `high`: 0.3 s of any voice, unjudged. `off`: nothing that is said; what is said over an
    answer is ignored."""
    interruption_keywords: str = setting("", ("edge",), syntax="texts, separated by commas", unset="none")
    """Words that interrupt an answer at once, besides the built-in ones ("stop", "wait", 停, 等等 and others)."""
    filler_seconds: float = setting(1.0, ("edge",), unit="seconds", ge=0, le=30)
    """Wait for an answer's first words after which the server says "One moment.", and five seconds later once more
    that it is still working. 0 switches this off."""
    echo_cancellation: Literal["off", "on"] = setting("off", ("edge",))
    """Whether the server cancels the echo of devices that were built for it (`aec`), so that their users can interrupt
    by voice. Experimental: real rooms were not measured. `off`: such devices do not listen while they speak."""
    voice_bitrate: Literal["24k", "32k"] = setting("32k", ("edge",))
    """Bits a second of the voice that is sent to devices. Both sound equally good; `24k` takes a quarter less of the
    device's downlink, and twice as much CPU time to encode."""
    unheard_reply: Literal["spoken", "shown", "off"] = setting("spoken", ("edge",))
    """Reply to a push-to-talk press without speech: `spoken` speaks a short sentence, `shown` shows it on the screen,
    `off` sends nothing. A press of less than 0.3 s gets no reply."""
    history_messages: int = setting(20, ("worker",), ge=0)
    """How many of the newest messages of a device's history the model gets at least; 0 for none. It gets up to nine
    more, because old messages are left out ten at once: an endpoint that caches prompts reuses the equal beginning."""
    history_seconds: int = setting(3600, ("worker",), unit="seconds", ge=60)
    """How long a device's history is kept after its last turn."""
    conversations: Literal["on", "off"] = setting("off", ("worker",), equal=True)
    """Whether control records what users say and what is answered. Without it, events tell that there was a turn, how
    long its stages took and which tools it called, but no words. Tell your users before you switch it on."""
    memory: Literal["on", "off"] = setting("off", ("worker",), equal=True)
    """Whether devices remember facts about their users beyond the history. `on`: at the end of a conversation the model
    is asked once which facts to keep, and users can say what to remember and to forget. Tell your users before you
    switch it on."""

    @field_validator("tool_policy")
    @classmethod
    def _check_rules(cls, text: str) -> str:
        if not _RULES.fullmatch(text):
            raise ValueError("each rule is `allow`, `ask` or `deny`, a space, and a risk or a tool's name; 64 at most")
        return text
