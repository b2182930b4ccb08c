"""The rules for a server, as data, and the record of its breaches.

A breach is collected, never raised: the device goes on as firmware would. Clauses are those of the device contract.
"""

from collections.abc import Iterable
from dataclasses import dataclass

KEPT_PER_RULE = 20
"""Violations of one rule that are kept with their detail; further ones are only counted."""

Finding = tuple[str, str]
"""A rule's name and what was seen."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A duty of the server, and the clause of the device contract."""

    clause: str
    text: str


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on something counts as a breach, in seconds."""

    hello: float = 3.0
    """Answer to a hello (H10)."""
    underrun: float = 0.06
    """Silence inside a sentence of an answer (D4)."""
    pause: float = 2.0
    """Silence between two sentences of an answer: no firmware rule, but a listener takes it for the end."""
    after_abort: float = 0.3
    """Audio that still arrives after an interruption (D12 with a round trip)."""
    abort_answer: float = 1.0
    """`tts stop` after an interruption (S5 with a round trip)."""
    stuck: float = 15.0
    """State speaking without anything to play (S17)."""
    late_stop: float = 1.0
    """`tts stop` after the last audio was played (D10)."""
    late_packets: float = 0.5
    """Audio that arrives after the state speaking was left."""
    unheard: float = 120.0
    """State listening without a sign from the server (S15)."""


RULES: dict[str, Rule] = {
    "ota-status": Rule("1.1", "bootstrap answers exactly 200, without redirect"),
    "ota-size": Rule("1.2 O1", "bootstrap's body stays below 7 KB; 8 KB hang the device"),
    "ota-framing": Rule("O10", "bootstrap's body has a length, is chunked, or ends with the connection"),
    "ota-json": Rule("1.2", "bootstrap answers one JSON object"),
    "ota-mqtt": Rule("1.2 O1", "`mqtt` holds five strings and a numeric keepalive"),
    "ota-keys": Rule("1.2 O4", "stored keys have at most 15 characters, stored strings less than 4000 bytes"),
    "ota-endpoint": Rule("1.2 O4", "`endpoint` is host or host:port, without scheme and without IPv6"),
    "ota-time": Rule("1.2", "`server_time` holds two numbers"),
    "ota-firmware": Rule("1.2 O5", "no `firmware` that makes the device crash or upgrade for ever"),
    "hello-missing": Rule("3.2", "a hello is answered within 10 s, validly"),
    "hello-late": Rule("3.2", "no hello is answered after the device gave up"),
    "hello-slow": Rule("H10", "a hello is answered soon, whatever the state of the models"),
    "hello-field": Rule("3.2", "every field of the server's hello has the right type and range"),
    "hello-nonce": Rule("3.2 H1", "the nonce begins with 01 and ends with eight zero bytes"),
    "hello-key-reuse": Rule("3.2", "every hello carries a fresh key: both counters begin again"),
    "hello-session-reuse": Rule("H2", "every hello opens a session with a new id"),
    "json-invalid": Rule("2.1", "every message is one JSON object with a string `type`"),
    "json-depth": Rule("2.1 S16", "messages nest at most 10 deep: the parser has a 4 KB stack"),
    "json-size": Rule("S16", "messages have at most 8 KB"),
    "crash": Rule("8.1", "no message lacks what older firmware dereferences: it restarts"),
    "heap": Rule("10", "messages to a board without PSRAM have at most 6 KB"),
    "body-hang": Rule("1.2 6.1", "no HTTP answer has 8192 bytes or more: the client hangs until power-off"),
    "download-length": Rule("1.5 O7", "downloads answer 200 with `Content-Length`, spelled so"),
    "field-missing": Rule("5.2 8.1", "every field is there with the right type; older firmware crashes without"),
    "tts-state": Rule("5.2", "`tts` has one of the states start, sentence_start, stop"),
    "emotion-unknown": Rule("5.2", "`emotion` is one of the 21 names"),
    "session-foreign": Rule("5.2", "messages of a conversation carry the live session's id"),
    "speech-without-channel": Rule("5.3.3", "no `tts start` to a device without an audio channel"),
    "stuck-speaking": Rule("S17", "no device is left speaking without audio"),
    "stuck-listening": Rule("S15 4.5", "no device is left listening to nobody: goodbye, or a sign every 120 s"),
    "stop-late": Rule("D10", "`tts stop` comes soon after the last audio was played"),
    "abort-unanswered": Rule("5.3.1 S5", "an interruption is answered with `tts stop`"),
    "audio-after-abort": Rule("D12", "audio ends at once after an interruption"),
    "mcp-request": Rule("6 C1", "JSON-RPC 2.0 with numeric ids and an object, not null, as params"),
    "mcp-id-reuse": Rule("6 C1", "no request id is used twice in one connection"),
    "datagram-size": Rule("D6", "every datagram has 24 to 1200 bytes"),
    "datagram-form": Rule("4.1", "type 1 and the true payload length in every header"),
    "sequence": Rule("4.1 D1", "sequence numbers rise from 1 on over the whole session"),
    "keystream": Rule("4.6 D2", "no two packets share keystream, in or across directions"),
    "echo-reference": Rule("4.4 D3", "a server that cancels echo stamps packets of 60 ms, rising from above 0"),
    "mailbox-overflow": Rule("4.1 D5", "no burst overflows the socket's 6 datagrams"),
    "queue-overflow": Rule("4.3 D4", "the decode queue (40 packets, 20 from firmware 2.5 on) never overflows"),
    "audio-undecodable": Rule("D8", "payloads are Opus"),
    "audio-format": Rule("D8", "payloads are mono and last as long as the hello said"),
    "audio-before-clear": Rule("4.3 D9", "no sound is lost because it came before the queue was cleared"),
    "audio-outside-speaking": Rule("4.3", "no audio comes outside the state speaking"),
    "notify-unknown": Rule("2.5 notify", "no `notify` goes to firmware before 2.5, which does not know it"),
    "notify-form": Rule("2.5 notify", "`notify` holds an http address, and subtitles with time and text if any"),
    "notify-audio": Rule("2.5 notify", "a notification's address answers 2xx with a whole mono Ogg Opus stream"),
    "underrun": Rule("4.3 D4", "playback never runs dry inside a sentence"),
    "pause": Rule("4.3", "no long silence between the sentences of one answer"),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach: `at` in seconds since the simulation began."""

    at: float
    rule: str
    detail: str

    @property
    def clause(self) -> str:
        return RULES[self.rule].clause


class Audit:
    """Collects breaches; `ignored` names the rules that do not count."""

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        unknown = ignored - RULES.keys()
        if unknown:
            raise KeyError(f"no such rule: {', '.join(sorted(unknown))}")
        self._ignored = ignored
        self._excused: dict[str, float] = {}
        self.violations: list[Violation] = []
        self.counts: dict[str, int] = {}
        self.excused: dict[str, int] = {}
        """Breaches that are not the server's fault, by rule."""

    def excuse(self, rules: Iterable[str], until: float) -> None:
        """Do not count breaches of these rules until this time: something else than the server causes them."""
        for rule in rules:
            RULES[rule]
            self._excused[rule] = max(until, self._excused.get(rule, until))

    def record(self, at: float, rule: str, detail: str) -> bool:
        """Record a breach of a rule of `RULES`; return whether it counts."""
        RULES[rule]
        if rule in self._ignored:
            return False
        if at < self._excused.get(rule, at):
            self.excused[rule] = self.excused.get(rule, 0) + 1
            return False
        self.counts[rule] = self.counts.get(rule, 0) + 1
        if self.counts[rule] <= KEPT_PER_RULE:
            self.violations.append(Violation(at, rule, detail))
        return True
