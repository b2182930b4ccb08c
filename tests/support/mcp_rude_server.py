"""An MCP server that behaves badly, run as a program with the name of its vice; speaks the protocol by hand.

`deaf` reads nothing and says nothing, `mute` never answers a call, `flood` writes messages without end, `endless`
answers a call with a line that never ends, `huge` with one of 3 MB, `vanishing` ends at the first call, `stubborn`
ignores signals and the end of its input, `crash` ends at once, `junk` answers everything with what is no answer.
"""

import json
import os
import signal
import sys
import time
from typing import Any

TOOL = {"name": "act", "description": "Act.", "inputSchema": {"type": "object", "properties": {}}}


def say(message: dict[str, Any]) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def serve(vice: str, request: dict[str, Any]) -> None:
    match request.get("method"):
        case "initialize":
            info = {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "r", "version": "1"},
            }
            say({"id": request["id"], "result": info})
        case "tools/list" if vice == "junk":
            say({"id": request["id"], "result": {"tools": [7, {"name": 8}, {"name": "act", "inputSchema": "x"}, TOOL]}})
        case "tools/list":
            say({"id": request["id"], "result": {"tools": [TOOL]}})
            while vice == "flood":
                say({"method": "notifications/tools/list_changed"})
        case "tools/call":
            misbehave(vice, request["id"])


def misbehave(vice: str, number: int) -> None:
    head = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % number
    match vice:
        case "huge":
            write(head + b"x" * 3_000_000 + b'"}]}}\n')
        case "endless":
            write(head)
            while True:
                write(b"x" * 65536)
        case "vanishing":
            os._exit(1)
        case "junk":
            say({"id": number, "result": {"content": [None, 3, {"type": "odd"}, {"type": "text"}], "isError": "maybe"}})


def main(vice: str) -> None:
    if vice == "crash":
        sys.exit(4)
    if vice == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while vice == "deaf":
        time.sleep(1)
    for line in sys.stdin:
        serve(vice, json.loads(line))
    while vice == "stubborn":
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
