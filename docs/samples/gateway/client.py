"""A small client of the LLM Gateway API: it registers one tool, asks one question, and prints the answer.

pip install websockets
python client.py ws://127.0.0.1:9400 "How warm is it in the kitchen?" [TOKEN]
"""

import asyncio
import json
import sys
from typing import Any

from websockets.asyncio.client import connect

TOOL = {
    "name": "read_thermometer",
    "description": "Returns the temperature of a room in degrees Celsius.",
    "parameters": {
        "type": "object",
        "properties": {"room": {"type": "string", "description": "Name of the room"}},
        "required": ["room"],
    },
}


def read_thermometer(room: str) -> dict[str, Any]:
    """Do what the tool promises; replace this with your device."""
    return {"room": room, "celsius": 21.5}


def run_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `tool_result`. A failure goes to the user, so give its reason in words."""
    if name != TOOL["name"]:
        return {"success": False, "error": f"There is no tool {name}"}
    return {"success": True, "result": read_thermometer(**arguments)}


async def ask(url: str, question: str, token: str = "") -> str:
    """Open a session, offer the tool, ask, and return the answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else None
    async with connect(url, additional_headers=headers) as socket:

        async def send(**message: Any) -> None:
            await socket.send(json.dumps(message))

        async for frame in socket:
            message = json.loads(frame)
            match message["type"]:
                case "status" if message["status"] == "connected":
                    # The session began with the connection; `start_session` with this id resumes it in another one.
                    session = message["data"]["session_id"]
                    await send(type="register_tools", tools=[TOOL])
                case "tools_registered":
                    await send(type="text_input", text=question, session_id=session)
                case "tool_callback":
                    result = run_tool(message["tool_name"], message["arguments"])
                    await send(type="tool_result", call_id=message["call_id"], **result)
                case "llm_response" if message["is_final"]:
                    return str(message["content"])
                case "error":
                    raise RuntimeError(f"{message['code']}: {message['message']} ({message['details']})")
    raise RuntimeError("The gateway closed the connection")


if __name__ == "__main__":
    print(asyncio.run(ask(*sys.argv[1:4])))
