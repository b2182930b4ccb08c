"""What happened in a run, and the checks over it: pure functions from histories to violations.

All times are seconds on one clock, the harness's.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

Outcome = Literal["open", "answered", "apologised", "device alert", "broken off", "dismissed", "unanswered"]
"""How a turn ended for the user.

`answered`: speech began, said something of the turn's scene, and stopped. `apologised`: the server said or showed that
it could not. `device alert`: the device itself showed that the server cannot be reached. `broken off`: the device went
idle before the user had really begun. `dismissed`: it went idle without a word. `unanswered`: none of it in time.
"""
State = Literal["sent", "ok", "error", "not_sent", "unknown"]
"""How a call stands in the server's records."""
REACTION = 0.4
"""Seconds after the user went on in which a tool may still act: the pause had just ended the utterance."""
Told = Literal["ok", "error", "not_sent", "unknown", "other"]
"""What the model was told of a call."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken."""

    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Execution:
    """A tool that acted on a device: `call` is the JSON-RPC id, `turn` the number that the model passed on."""

    at: float
    device: str
    call: int
    tool: str
    turn: int
    token: str
    """The result, which no other execution has."""


@dataclass(slots=True)
class Turn:
    """One utterance of a user, and what the device heard and showed until the turn was over."""

    number: int
    device: str
    mark: int
    begun: float
    resumed: float | None = None
    """When the user went on after a pause to think; None without one, or if the device did not listen to all of it or
    had no MQTT connection over which it hears that the pause has ended the utterance."""
    said: float = 0.0
    ended: float = 0.0
    outcome: Outcome = "open"
    heard: bool = False
    """Whether the device was told what was understood."""
    sentences: list[str] = field(default_factory=list)
    packets: list[float] = field(default_factory=list)
    """When audio of the answer arrived."""
    stops: int = 0
    """How often speech ended that had said something."""
    failed: bool = False
    """Whether the device itself showed that the server cannot be reached."""
    deaf: bool = False
    """Whether the device lost its MQTT connection meanwhile: then words are lost that go with the audio."""
    alerts: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    """The sentences that the model wrote last."""
    told: list[str] = field(default_factory=list)
    """What the model was told of the turn's calls, as it was written, each text once."""
    final: bool = False
    """Held after all faults, when nothing may go wrong any more."""
    notes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Call:
    """A call in the server's records: every state in which it was seen, in this order, and its result."""

    device: str
    call: int
    states: tuple[State, ...]
    result: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """When something was wrong; `ended` None while it still is."""

    began: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class History:
    """All that is known after a run."""

    turns: Sequence[Turn]
    executions: Sequence[Execution]
    calls: Sequence[Call]
    devices: Sequence[str]


def check(history: History) -> list[Violation]:
    """Return every broken promise."""
    return [
        *check_executions(history.executions),
        *check_patience(history.turns, history.executions),
        *check_turns(history.turns),
        *check_calls(history.calls, history.executions),
        *check_told(history.turns, history.executions),
        *check_final(history.turns, history.devices),
    ]


def check_executions(executions: Iterable[Execution]) -> Iterator[Violation]:
    """No call acts twice, and no turn acts twice under different ids."""
    executions = list(executions)
    calls = Counter((one.device, one.call) for one in executions)
    turns: dict[tuple[str, int], set[int]] = defaultdict(set)
    for one in executions:
        turns[one.device, one.turn].add(one.call)
    for (device, call), count in calls.items():
        if count > 1:
            yield Violation("executed twice", f"call {call} on {device} ran {count} times")
    for (device, turn), ids in turns.items():
        if len(ids) > 1:
            yield Violation("turn acted twice", f"turn {turn} on {device} ran calls {sorted(ids)}")


def check_patience(turns: Iterable[Turn], executions: Iterable[Execution]) -> Iterator[Violation]:
    """No tool acts while the user still speaks: what was prepared in a pause is not done."""
    spoke = {(turn.device, turn.number): (turn.resumed + REACTION, turn.said) for turn in turns if turn.resumed}
    for one in executions:
        began, ended = spoke.get((one.device, one.turn), (0.0, 0.0))
        if began < one.at < ended:
            yield Violation("acted too soon", f"turn {one.turn} on {one.device}, {ended - one.at:.2f} s before its end")


def check_turns(turns: Iterable[Turn]) -> Iterator[Violation]:
    """Every turn ends in an answer or in one clear apology; an answer is whole, heard, and says nothing twice."""
    for turn in turns:
        where = f"turn {turn.number} on {turn.device}"
        if turn.outcome in ("open", "unanswered"):
            yield Violation("no answer", f"{where}: {'; '.join(turn.notes) or 'nothing came'}")
        elif turn.outcome == "dismissed":
            yield Violation("ended without a word", f"{where}: {'; '.join(turn.notes)}")
        elif turn.outcome == "answered":
            yield from _check_answer(turn, where)


def _check_answer(turn: Turn, where: str) -> Iterator[Violation]:
    if not turn.packets:
        yield Violation("answer without sound", where)
    if turn.deaf:
        return
    said = letters(turn.text)
    missing = [one for one in turn.wanted if letters(one) not in said]
    if missing:
        yield Violation("answer cut short", f"{where}: heard {turn.text!r}, without {missing}")
    if repeated := [one for one, count in Counter(map(letters, turn.sentences)).items() if count > 1]:
        yield Violation("said twice", f"{where}: {repeated}")


def check_calls(calls: Iterable[Call], executions: Iterable[Execution]) -> Iterator[Violation]:
    """Every call ends in exactly one outcome; OK implies that it ran once, NOT_SENT that it did not."""
    ran: dict[tuple[str, int], list[str]] = defaultdict(list)
    for one in executions:
        ran[one.device, one.call].append(one.token)
    known = set()
    for call in calls:
        known.add((call.device, call.call))
        yield from _check_call(call, ran[call.device, call.call])
    for device, number in ran:
        if (device, number) not in known:
            yield Violation("ran without a record", f"call {number} on {device}")


def _check_call(call: Call, tokens: Sequence[str]) -> Iterator[Violation]:
    where = f"call {call.call} on {call.device}"
    ends = [state for state in call.states if state != "sent"]
    if not ends:
        yield Violation("call never ended", where)
    elif len(set(ends)) > 1 or call.states[-1] == "sent":
        yield Violation("call ended more than once", f"{where}: {', then '.join(call.states)}")
    last = call.states[-1]
    if last == "ok" and len(tokens) != 1:
        yield Violation("OK, but it ran not once", f"{where} ran {len(tokens)} times")
    if last == "ok" and tokens and call.result not in tokens:
        yield Violation("OK with a foreign result", f"{where}: {call.result!r}, ran with {tokens}")
    if last == "not_sent" and tokens:
        yield Violation("NOT_SENT, but it ran", where)


def check_told(turns: Iterable[Turn], executions: Iterable[Execution]) -> Iterator[Violation]:
    """The model is told one thing of a turn's call, and the truth; an answer holds the result."""
    ran: dict[tuple[str, int], list[str]] = defaultdict(list)
    for one in executions:
        ran[one.device, one.turn].append(one.token)
    for turn in turns:
        tokens, where = ran[turn.device, turn.number], f"turn {turn.number} on {turn.device}"
        kinds = {classify(text, tokens) for text in turn.told}
        if len(turn.told) > 1:
            yield Violation("told two things", f"{where}: {turn.told}")
        if "not_sent" in kinds and tokens:
            yield Violation("told NOT_SENT, but it ran", f"{where}: {turn.told}")
        whole = kinds == {"ok"} and turn.outcome == "answered" and not turn.deaf
        if whole and letters(tokens[0]) not in letters(turn.text):
            yield Violation("answer without the result", f"{where}: {turn.text!r} without {tokens[0]}")
        if any(text.isalnum() and text not in tokens for text in turn.told):
            yield Violation("told OK, but it did not run", f"{where}: {turn.told}, ran with {tokens}")


def classify(text: str, tokens: Sequence[str]) -> Told:
    """Return which outcome a text for the model stands for."""
    if text in tokens:
        return "ok"
    for words, kind in _WORDS.items():
        if text.startswith(words):
            return kind
    return "other"


_WORDS: Mapping[str, Told] = {
    "error: not done": "not_sent",
    "error: unknown whether": "unknown",
    "error:": "error",
}


def check_final(turns: Iterable[Turn], devices: Iterable[str]) -> Iterator[Violation]:
    """After all faults every device can hold one more good turn, its call included."""
    finals = {turn.device: turn for turn in turns if turn.final}
    for device in devices:
        turn = finals.get(device)
        if turn is None:
            yield Violation("device left behind", f"{device} never got to its last turn")
        elif not was_good(turn):
            yield Violation("device left behind", f"{device}: last turn {turn.outcome}, the model was told {turn.told}")


def was_good(turn: Turn) -> bool:
    """Whether its call was made and its answer heard."""
    return turn.outcome == "answered" and bool(turn.told) and not turn.told[0].startswith("error")


def deadline(since: float, limit: float, faults: Iterable[Span], now: float, longest: float) -> float:
    """Return until when something that began at `since` may take.

    Every fault that comes before that moment moves it to `limit` seconds after the fault's end, but never beyond
    `longest` seconds after `since`.
    """
    until = since + limit
    for fault in sorted(faults, key=lambda one: one.began):
        ended = now if fault.ended is None else fault.ended
        if fault.began <= until and ended >= since:
            until = max(until, ended + limit)
    return min(until, since + longest)


def gap(packets: Sequence[float]) -> float:
    """Return the longest silence between two packets, 0 for fewer than two."""
    return max((after - before for before, after in pairwise(packets)), default=0.0)


def letters(text: str) -> str:
    """Return what is left of a text however it was cleaned."""
    return "".join(char for char in text.casefold() if char.isalnum())
