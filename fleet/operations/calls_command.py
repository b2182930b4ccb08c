"""`fleet devices call|turn|say`: tools of a device and texts for it, over control."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic import ValidationError

from fleet.client import calls
from fleet.client.call import Call
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import Mac, operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.inputs import read_pair
from fleet.operations.json_output import AsJson, print_result
from fleet.wire.control.calls import SayRequest, ToolCallState, TurnRequest, TurnState

app = typer.Typer()

Text = Annotated[str, typer.Argument(help="The text.")]
Wait = Annotated[float, typer.Option(min=0, max=120, help="Seconds to wait for the end.")]
Interrupt = Annotated[bool, typer.Option("--interrupt", help="End a turn that is being answered.")]
_FAILED = 1


@app.command()
@operation
async def call(
    settings: Settings,
    mac: Mac,
    tool: Annotated[str, typer.Argument(help="The tool's name, such as self.audio_speaker.set_volume.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments as name=value, such as volume=40.")] = None,
    wait: Wait = 30,
    as_json: AsJson = False,
) -> int:
    """Call a tool of a device, once; exit with 1 if it was not done, or nobody knows. Dangerous ones need a scope."""
    given = dict(read_pair(text) for text in arguments or ())
    async with open_control(settings) as control:
        state = await control.send(calls.call(read_mac(mac), tool, given, wait=wait))
    _show("calls", state, as_json=as_json)
    return 0 if state.state in ("ok", "queued", "sent") else _FAILED


@app.command()
@operation
async def turn(
    settings: Settings, mac: Mac, text: Text, wait: Wait = 60, interrupt: Interrupt = False, as_json: AsJson = False
) -> int:
    """Let a device's agent answer a text; in a session the device speaks the answer."""
    with _checking_text():
        sent = calls.turn(read_mac(mac), TurnRequest(text=text, interrupt=interrupt), wait)
    return await _send_text(settings, sent, as_json=as_json)


@app.command()
@operation
async def say(
    settings: Settings, mac: Mac, text: Text, wait: Wait = 60, interrupt: Interrupt = False, as_json: AsJson = False
) -> int:
    """Let a device speak a text as it is, in its session; an idle device is refused."""
    with _checking_text():
        sent = calls.say(read_mac(mac), SayRequest(text=text, interrupt=interrupt), wait)
    return await _send_text(settings, sent, as_json=as_json)


@contextmanager
def _checking_text() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise ConfigError("a text has 1 to 4,000 characters") from error


async def _send_text(settings: Settings, sent: Call[TurnState], *, as_json: bool) -> int:
    async with open_control(settings) as control:
        state = await control.send(sent)
    _show("turns", state, as_json=as_json)
    return 0 if state.state in ("answered", "accepted") else _FAILED


def _show(name: str, state: ToolCallState | TurnState, *, as_json: bool) -> None:
    text = f"{state.state}: {visible(state.text)}" if state.text else f"{state.state} ({state.id})"
    print_result(name, [state], text, as_json=as_json)
