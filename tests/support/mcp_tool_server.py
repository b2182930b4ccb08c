"""A real MCP server for tests, written with the official SDK; run as a program: `stdio`, or `http PORT [json]`.

What its tools did outlives it in the file that COUNTER names.
"""

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

# Before the imports that take seconds on a busy machine: who waits for the port need not wait for them.
LISTENER = socket.create_server(("127.0.0.1", int(sys.argv[2]))) if sys.argv[1:2] == ["http"] else None

import uvicorn  # noqa: E402
from mcp.server.mcpserver import Context, MCPServer  # noqa: E402
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402
from mcp.types import ToolAnnotations  # noqa: E402

server = MCPServer("tools-for-tests")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def note(text: str) -> str:
    """Write a line down."""
    with Path(os.environ["COUNTER"]).open("a") as file:
        file.write(f"{text}\n")
    return f"noted {text}"


def noted() -> list[str]:
    path = Path(os.environ["COUNTER"])
    return path.read_text().split() if path.exists() else []


@server.tool()
async def ponder(text: str) -> str:
    """Write a line down, and answer a minute later."""
    note(text)
    await asyncio.sleep(60)
    return "pondered"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def peep(text: str) -> str:
    """Write a line down that says that this was read, and answer a minute later the first time."""
    again = text in noted()
    note(text)
    await asyncio.sleep(0 if again else 60)
    return "peeped"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def variable(name: str) -> str:
    """Tell an environment variable."""
    return os.environ.get(name, "(not set)")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def wait(seconds: float) -> str:
    """Answer late."""
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def fail(reason: str) -> str:
    """Fail."""
    raise ToolError(reason)


@server.tool()
def large(size: int) -> str:
    """Answer with a long text."""
    return "long " * (size // 5)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def header(name: str, context: Context) -> str:
    """Tell a header of the request."""
    return (context.headers or {}).get(name, "(not sent)")


@server.tool()
def die() -> str:
    """End the whole server at once."""
    os._exit(3)


@server.tool()
async def babble(lines: int) -> str:
    """Write what is no message."""
    os.write(1, b"this is no JSON\n" * lines)
    return "babbled"


@server.tool()
def plan(place: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what it was given."""
    return {"place": place, "options": options or {}}


@server.tool()
async def grow(name: str, context: Context) -> str:
    """Offer one tool more."""
    server.add_tool(lambda: f"I am {name}", name=name, description="It grew.")
    await context.session.send_tool_list_changed()
    return "grown"


if __name__ == "__main__":
    if LISTENER is None:
        server.run()
    else:
        app = server.streamable_http_app(host="127.0.0.1", json_response=sys.argv[3:] == ["json"])
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[LISTENER])
