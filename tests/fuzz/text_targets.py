"""What models write: streams of events, calls in pieces, text to be spoken."""

import unicodedata
from random import Random

from fleet.adapters.llm.answer import DONE, StreamedAnswer
from fleet.adapters.llm.calls import is_object
from fleet.adapters.llm.chat_request import RequestWriter
from fleet.adapters.llm.reasoning import ThoughtFilter
from fleet.adapters.llm.sse import SseReader
from fleet.core.ports import USUAL, CallsAsked, LlmEvent, Message, TextDelta
from fleet.core.text.emotion import EMOTIONS, emotion_of
from fleet.core.text.sentences import LONGEST, LONGEST_CODE, SentenceSplitter
from fleet.core.text.speakable import speakable
from tests.fuzz import damage
from tests.fuzz.target import Target

_UNSPOKEN = {"So", "Cs", "Cn", "Cc"}
_FENCE = "```"


def make_text(random: Random) -> list[str]:
    """Return the pieces of a model's answer."""
    return damage.chunks(random, damage.text(random))


def split(chunks: list[str]) -> list[str]:
    splitter = SentenceSplitter()
    return [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.flush()


def check_text(chunks: list[str]) -> None:
    """Nothing is lost, no piece is long, the chunks do not matter, and every piece can be cleaned for speech."""
    text = "".join(chunks)
    pieces = split(chunks)
    assert pieces == split([text])
    assert _letters("".join(pieces)).replace("`", "") == _letters(text).replace("`", "")
    for piece in pieces:
        assert piece
        assert piece == piece.strip()
        # The fence that ends a block may reach beyond the limit.
        assert len(piece) <= (LONGEST_CODE + len(_FENCE) - 1 if _FENCE in piece else LONGEST)
        check_spoken(piece)
    assert emotion_of(text) in (None, *EMOTIONS)


def _letters(text: str) -> str:
    return "".join(text.split())


def check_spoken(piece: str) -> None:
    spoken = speakable(piece)
    assert len(spoken) <= 4 * len(piece) + 16
    assert spoken == spoken.strip()
    assert not any(
        unicodedata.category(char) in _UNSPOKEN and not "\u3300" <= char <= "\u33ff"
        for char in spoken
        if char not in "℃℉°№^"
    )
    assert "`" not in spoken or "\\`" in piece
    assert "**" not in spoken or "**" in piece


def make_any_text(random: Random) -> str:
    return damage.text(random) + random.choice(("", "", "&#" + "1" * 5000 + ";", "&#x" + "f" * 5000 + ";", "[" * 300))


def make_stream(random: Random) -> list[bytes]:
    """Return the chunks of an event stream as a chat model sends it, damaged."""
    lines = []
    for _ in range(random.randrange(1, 8)):
        payload = random.choice((b"[DONE]", b"", b": ping")) if random.randrange(8) == 0 else _payload(random)
        lines.append(random.choice((b"data: ", b"data:", b"data: ", b"event: ", b"")) + payload)
    stream = random.choice((b"\n\n", b"\r\n\r\n", b"\n", b"\r")).join([*lines, b""])
    if random.randrange(3) == 0:
        stream = damage.damage_bytes(random, stream, stream)
    return damage.chunks(random, stream)


def _payload(random: Random) -> bytes:
    if random.randrange(3) == 0:
        return random.choice(damage.seeds("chunks.jsonl")).encode()
    return damage.json_bytes(random, "chunks.jsonl")


def check_stream(chunks: list[bytes]) -> None:
    """The payloads do not depend on the chunks; an answer is made of what may be said, written down and asked again."""
    reader = SseReader()
    payloads = [payload for chunk in chunks for payload in reader.feed(chunk)] + reader.end()
    whole = SseReader()
    assert whole.feed(b"".join(chunks)) + whole.end() == payloads
    answer = StreamedAnswer({"call_1"})
    events: list[LlmEvent] = []
    for payload in payloads:
        events += answer.feed(payload)
        if answer.fault:
            break
    events += answer.end()
    _check_events(events)
    assert answer.finished or DONE not in payloads or answer.fault


def _check_events(events: list[LlmEvent]) -> None:
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    "".join(texts).encode()
    asked = [event for event in events if isinstance(event, CallsAsked)]
    assert len(asked) <= 1
    calls = asked[0].calls if asked else ()
    assert not asked or events[-1] is asked[0]
    assert len({call.id for call in calls} | {"call_1"}) == len(calls) + 1
    assert all(call.name and call.arguments for call in calls)
    request = RequestWriter(is_openai=False, is_google=False, usual=USUAL)
    [written] = request.write([Message("assistant", "".join(texts), calls)], [], USUAL)["messages"]
    assert all(is_object(call["function"]["arguments"]) for call in written.get("tool_calls", ()))


def make_thoughts(random: Random) -> list[str]:
    tokens = ("<think>", "</think>", "<th", "ink>", "</", "think>", " ", "\n", "a", "好", "<")
    return damage.chunks(random, "".join(random.choice(tokens) for _ in range(random.randrange(20))))


def check_thoughts(chunks: list[str]) -> None:
    """What is said and what is thought do not depend on the chunks, and are parts of what was written, in its order."""
    parted = _parted(chunks)
    assert parted == _parted(["".join(chunks)])
    for part in parted:
        written = iter("".join(chunks))
        assert all(letter in written for letter in part)


def _parted(chunks: list[str]) -> tuple[str, str]:
    thoughts = ThoughtFilter()
    parts = [*(thoughts.feed(chunk) for chunk in chunks), thoughts.end()]
    return "".join(part.said for part in parts), "".join(part.thought for part in parts)


TARGETS = (
    Target("text", make_text, check_text, 8),
    Target("spoken", make_any_text, check_spoken, 4),
    Target("llm", make_stream, check_stream, 10),
    Target("thoughts", make_thoughts, check_thoughts, 3),
)
