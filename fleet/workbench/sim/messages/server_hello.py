"""The server's hello, read by the rules of contract 3.2."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fleet.workbench.sim.messages.message import JsonObject, item, member, number, text
from fleet.workbench.sim.records.audit import Finding

SAMPLE_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)
FRAME_MS = (5, 10, 20, 40, 60, 80, 100, 120)

_HEX = re.compile(r"[0-9a-fA-F]{32}")
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class ServerHello:
    """A hello that opens a channel; `sample_rate` in Hz and `frame_ms` are those of the downlink."""

    session: str
    server: str
    port: int
    key: bytes
    nonce: bytes
    sample_rate: int = 24_000
    frame_ms: int = 60


def read(message: JsonObject) -> ServerHello | None:
    """Return the hello, or None when firmware ignores it."""
    udp = member(message, "udp")
    server, port = text(udp, "server"), number(item(udp, "port"))
    key, nonce = text(udp, "key") or "", text(udp, "nonce") or ""
    usable = text(message, "transport") == "udp" and server and port is not None and 1 <= port <= 65535
    if not usable or not server or port is None or not _HEX.fullmatch(key) or not _HEX.fullmatch(nonce):
        return None
    audio = member(message, "audio_params")
    return ServerHello(
        session=text(message, "session_id") or "",
        server=server,
        port=int(port),
        key=bytes.fromhex(key),
        nonce=bytes.fromhex(nonce),
        sample_rate=int(number(item(audio, "sample_rate")) or 24_000),
        frame_ms=int(number(item(audio, "frame_duration")) or 60),
    )


def check(message: JsonObject) -> Iterator[Finding]:
    """Yield what is wrong with a hello, whether or not firmware can use it."""
    if text(message, "transport") != "udp":
        yield "hello-field", f"transport {item(message, 'transport')!r}"
    if not _SESSION.fullmatch(text(message, "session_id") or ""):
        yield "hello-field", f"session_id {item(message, 'session_id')!r}"
    yield from _check_udp(member(message, "udp"))
    yield from _check_audio(member(message, "audio_params"))


def _check_udp(udp: JsonObject) -> Iterator[Finding]:
    port = item(udp, "port")
    if not _HOST.fullmatch(text(udp, "server") or ""):
        yield "hello-field", f"udp.server {item(udp, 'server')!r}"
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
        yield "hello-field", f"udp.port {port!r}"
    for name in ("key", "nonce"):
        if not _HEX.fullmatch(text(udp, name) or ""):
            yield "hello-field", f"udp.{name} is not 32 hex digits"
    nonce = text(udp, "nonce") or ""
    if _HEX.fullmatch(nonce) and (nonce[:2] != "01" or set(nonce[16:]) != {"0"}):
        yield "hello-nonce", nonce


def _check_audio(audio: JsonObject) -> Iterator[Finding]:
    rate, frame = item(audio, "sample_rate"), item(audio, "frame_duration")
    if rate not in SAMPLE_RATES:
        yield "hello-field", f"audio_params.sample_rate {rate!r}"
    if frame not in FRAME_MS:
        yield "hello-field", f"audio_params.frame_duration {frame!r}"
