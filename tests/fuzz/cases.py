"""Inputs that once broke something, each with its target; they are tried in every run."""

from typing import Any

from tests.fuzz import audio_targets

_VOLUME = (
    b'{"tools":[{"name":"v","inputSchema":{"properties":'
    b'{"n":{"type":"number"},"s":{"type":"string"},"l":{"type":"array"}}}}]}'
)
_NEEDS_A_LIST = b'{"tools":[{"name":"v","inputSchema":{"properties":{},"required":[["n"],{},null,1]}}]}'

CASES: tuple[tuple[str, Any], ...] = (
    # Half a surrogate pair travelled to Redis, to the log and back to the device, none of which could write it.
    ("frame", b'{"type":"\\ud800"}'),
    ("frame", b'{"type":"listen","state":"start","session_id":"\\udc00","mode":"auto"}'),
    ("frame", b'{"type":"listen","state":"detect","text":"\\ud83d"}'),
    ("frame", b'{"type":"abort","session_id":"\xed\xa0\x80","reason":"\\ud800"}'),
    ("frame", b'{"type":"mcp","payload":{"id":1,"result":{"content":[{"type":"text","text":"\\ud800"}]}}}'),
    ("frame", b'{"type":"mcp","payload":{"id":1,"result":{"nextCursor":"\\ud800","tools":[{"name":"\\ud800"}]}}}'),
    # Depth: of the parser, of the validator, of the tool list that is kept.
    ("frame", b"[" * 100_000),
    ("frame", b'{"type":"mcp","payload":' + b"[" * 990 + b"]" * 990 + b"}"),
    *(
        ("frame", b'{"type":"mcp","payload":{"id":1,"result":' + b"[" * depth + b"]" * depth + b"}}")
        for depth in (90, 190, 250, 260, 400, 950)
    ),
    *(
        ("jsonrpc", b'{"id":1,"result":{"content":[' + b"[" * depth + b"]" * depth + b"]}}")
        for depth in (200, 260, 900)
    ),
    (
        "frame",
        b'{"type":"mcp","payload":{"id":1,"result":{"tools":[{"name":"a","inputSchema":'
        + b'{"a":' * 240
        + b"1"
        + b"}" * 240
        + b"}]}}}",
    ),
    # Numbers.
    ("frame", b'{"type":"mcp","payload":{"id":true,"result":1}}'),
    ("frame", b'{"type":"mcp","payload":{"id":1e308,"result":NaN}}'),
    ("frame", b'{"type":"mcp","payload":{"id":-' + b"9" * 4300 + b',"result":1e999}}'),
    ("frame", b'{"type":"hello","version":' + b"9" * 4300 + b',"audio_params":{"frame_duration":60.0}}'),
    ("frame", b'{"type":"mcp","payload":{"id":1,"result":[' + b"NaN," * 60_000 + b"1]}}"),
    # What a model may write as arguments: depth, no numbers, half characters; what a device may require.
    ("toolcall", (_VOLUME, "[" * 100_000)),
    ("toolcall", (_VOLUME, '{"n":NaN}')),
    ("toolcall", (_VOLUME, '{"n":1e999}')),
    ("toolcall", (_VOLUME, '{"l":[-1e999]}')),
    ("toolcall", (_VOLUME, '{"n":"' + "9" * 400 + '"}')),
    ("toolcall", (_VOLUME, '{"n":"' + "9" * 5000 + '"}')),
    ("toolcall", (_VOLUME, '{"s":"\\ud800"}')),
    ("toolcall", (_VOLUME, '{"l":"\\udc00\\ud800"}')),
    ("toolcall", (_VOLUME, '{"l":' + "[" * 900 + "]" * 900 + "}")),
    ("toolcall", (_NEEDS_A_LIST, "{}")),
    ("login", ("fleet-\ud800", "service.k1", "slCGEJUOgBo83+JyYhCLtFaOn/sXpH8jyJVQgP3HFkI=")),
    # A slot is written in one way only.
    ("topic", "fleet/up/099/24:0a:c4:12:34:56"),
    ("topic", "fleet/up/٩٩/24:0a:c4:12:34:56"),
    # A character reference with more digits than Python converts.
    ("spoken", "&#" + "1" * 5000 + ";"),
    # Took a time that grew with the square of the length: minutes for one whole answer.
    ("text", ["a\n" * 15_000]),
    ("text", ["\ud800。", "。\n" * 5_000]),
    # The rest of a block of code that was too long for one piece was spoken.
    ("text", ["Look:\n```\n" + "x = 1\n" * 1000 + "```\nDone."]),
    (
        "llm",
        [
            b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"'
            + b"[" * 100_000
            + b'"}}]}}]}\n'
        ],
    ),
    ("llm", [b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"a":NaN}}}]}}]}\n']),
    # Jumps at the edges of the window, zero, the largest sequence number, and a copy of the first packet.
    (
        "datagrams",
        [
            (audio_targets.seal(b"\x58" + b"\xaa" * 19, sequence), address, 0.0)
            for sequence in (0, 3000, 3000, 2937, 2936, 6001, 6000, 0xFFFFFFFF, 1, 9000)
            for address in (audio_targets.HOME, audio_targets.AWAY)
        ],
    ),
)
