"""Schemas of tools with what hostile and odd ones hold, small enough for a device's message, and calls of them."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LONG_NAME = "n" * 5000


@dataclass
class Lure:
    """A server that schemas refer to; nobody may ask it for anything."""

    url: str = ""
    asked: list[str] = field(default_factory=list)


@contextlib.contextmanager
def run_lure() -> Iterator[Lure]:
    """Run a server on a free loopback port that notes each request, and gives a schema that refuses everything."""
    lure = Lure()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            lure.asked.append(self.path)
            body = b'{"not": {}}'
            self.send_response(200)
            self.send_header("Content-Type", "application/schema+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    lure.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="lure")
    thread.start()
    try:
        yield lure
    finally:
        server.shutdown()
        thread.join(240)
        server.server_close()


def hostile(url: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return by a name each: a schema, and arguments that nothing but a hostile part of it could refuse."""
    evil = "(a+)+$"
    bait = "a" * 40 + "!"
    wide: dict[str, Any] = {"type": "null"}
    for _ in range(3):
        wide = {"anyOf": [wide] * 6}
    return {
        "remote": ({"properties": {"x": {"$ref": f"{url}/x.json"}}}, {"x": {"a": 1}}),
        "base": ({"$id": f"{url}/base/", "properties": {"x": {"$ref": "x.json#/a"}}}, {"x": 1}),
        "dialect": (
            {"$schema": f"{url}/dialect", "properties": {"x": {"$schema": f"{url}/d", "pattern": evil}}},
            {"x": 1},
        ),
        "dynamic": ({"properties": {"x": {"$dynamicRef": f"{url}/y#node", "$recursiveRef": f"{url}/z"}}}, {"x": 1}),
        "whole": ({"$ref": f"{url}/whole.json"}, {"x": {"a": [1, None]}}),
        "itself": (
            {"properties": {"x": {"$ref": "#/properties/x"}}, "allOf": [{"$ref": "#"}, {"$ref": "#"}]},
            {"x": 1},
        ),
        "pattern": ({"properties": {"x": {"type": "string", "pattern": evil}}}, {"x": bait}),
        "patterns": ({"patternProperties": {evil: {"type": "null"}}, "additionalProperties": False}, {bait: 1}),
        "names": ({"propertyNames": {"pattern": evil}}, {bait: 1}),
        "long": ({"properties": {LONG_NAME: {"type": "integer"}}}, {"x": 1}),
        "wide": ({"properties": {"x": {"items": {"anyOf": [wide, {"const": 1}]}}}}, {"x": [1] * 99}),
    }


FREE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "object": ({"properties": {"x": {"type": "object"}}}, {"x": {"a": {"b": [None]}}}),
    "unnamed": ({"properties": {"x": {"type": "integer"}}}, {"x": 1, "more": {"y": None}}),
    "additional": ({"additionalProperties": {"type": "integer"}}, {"red": 1, "blue": 2}),
    "patterns": ({"patternProperties": {"^s_": {"type": "string"}}}, {"s_a": "x"}),
    "any": ({"properties": {"x": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}}, {"x": "many"}),
    "one": ({"properties": {"x": {"oneOf": [{"type": "array"}, {"type": "object"}]}}}, {"x": [1]}),
    "all": ({"properties": {"x": {"allOf": [{"type": "integer"}, {"minimum": 1}]}}}, {"x": 3}),
    "nullable": ({"properties": {"x": {"type": ["integer", "null"]}}}, {"x": None}),
    "types": ({"properties": {"x": {"type": ["integer", "string"]}}}, {"x": "30"}),
}
"""Schemas that allow what their arguments hold, and the arguments."""
