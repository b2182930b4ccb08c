"""The device's messages, put together as firmware does: some texts go in without being escaped (contract 5.1)."""

import json

from fleet.workbench.sim.profiles.profile import Mode, Profile


def hello(profile: Profile) -> str:
    features: dict[str, bool] = {"aec": True} if profile.aec else {}
    features["mcp"] = profile.mcp
    if profile.glyph_push is not None:
        features["glyph_push"] = profile.glyph_push
    message: dict[str, object] = {"type": "hello", "version": 3, "transport": "udp", "features": features}
    if profile.glyph_push:
        message["text_font"] = {"bundle": "puhui-common-20-4", "charset": "common", "size": 20, "bpp": 4}
    message["audio_params"] = {
        "format": "opus",
        "sample_rate": 16_000,
        "channels": 1,
        "frame_duration": profile.frame_ms,
    }
    return json.dumps(message, separators=(",", ":"))


def detect(session: str, wake_text: str) -> str:
    return f'{{"session_id":"{session}","type":"listen","state":"detect","text":"{wake_text}"}}'


def typed(session: str, text: str) -> str:
    """Return what py-xiaozhi's text box sends: `detect`, properly escaped (src/protocols/protocol.py)."""
    return json.dumps({"session_id": session, "type": "listen", "state": "detect", "text": text})


def listen_start(session: str, mode: Mode) -> str:
    return f'{{"session_id":"{session}","type":"listen","state":"start","mode":"{mode}"}}'


def listen_stop(session: str) -> str:
    return f'{{"session_id":"{session}","type":"listen","state":"stop"}}'


def abort(session: str, reason: str) -> str:
    """Return an interruption; `reason` is empty for the button."""
    why = f',"reason":"{reason}"' if reason else ""
    return f'{{"session_id":"{session}","type":"abort"{why}}}'


def goodbye(session: str) -> str:
    return f'{{"session_id":"{session}","type":"goodbye"}}'


def mcp(session: str, payload: str) -> str:
    return f'{{"session_id":"{session}","type":"mcp","payload":{payload}}}'
