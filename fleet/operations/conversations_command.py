"""`fleet conversations`: what was said, where it is recorded, over control."""

import json
import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from fleet.client import events as calls
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import Mac, operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.json_output import AsJson, AsJsonLines, print_result
from fleet.operations.listing import print_list
from fleet.wire.control.conversations import ConversationTurn, Line

app = typer.Typer(
    help="Recorded conversations: list, show, export, redact, delete, erase; watch a device.", no_args_is_help=True
)

Number = Annotated[int, typer.Argument(min=1, help="Number of the conversation.")]
Device = Annotated[str, typer.Option(help="Only of this MAC.")]
_COLUMNS = ("id", "device", "agent", "started", "ended", "turns")


@app.command("list")
@operation
async def list_conversations(
    settings: Settings,
    words: Annotated[str, typer.Option(help="Text that occurs in a question or an answer.")] = "",
    device: Device = "",
    agent: Annotated[str, typer.Option(help="Only of this agent.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Conversations at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List conversations, the newest first."""
    mac = read_mac(device) if device else ""
    asked = calls.conversations(words=words, device=mac, agent=agent, limit=min(limit, 500))
    rows: list[tuple[int, ...]] = []
    async with open_control(settings) as control:
        async for page in control.pages(asked):
            rows += [tuple(getattr(one, name) for name in _COLUMNS) for one in page.items[: limit - len(rows)]]
            if len(rows) == limit:
                break
    print_list("conversations", _COLUMNS, rows, as_json=as_json)


@app.command()
@operation
async def show(settings: Settings, number: Number, as_json: AsJson = False) -> None:
    """Show a conversation. The audit log notes it."""
    rows = []
    async with open_control(settings) as control:
        after: int | None = 0
        while after is not None:
            found = await control.send(calls.conversation(number, after))
            rows += [(one.id, one.at, *_said(one), one.outcome) for one in found.turns]
            after = found.next
    print_list("turns", ("id", "at", "question", "answer", "outcome"), rows, as_json=as_json)


@app.command()
@operation
async def export(settings: Settings, device: Device = "", _: AsJsonLines = False) -> None:
    """Write all turns as lines of JSON to standard output. The audit log notes it."""
    query = {"device": read_mac(device)} if device else {}
    async with open_control(settings) as control:
        async for piece in control.download("/conversations:export", query):
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


@app.command()
@operation
async def delete(settings: Settings, number: Number, as_json: AsJson = False) -> None:
    """Delete a conversation."""
    async with open_control(settings) as control:
        await control.send(calls.delete_conversation(number))
    print_result("conversations", [{"id": number}], f"conversation {number} is deleted", as_json=as_json)


@app.command()
@operation
async def redact(
    settings: Settings,
    number: Number,
    turn: Annotated[int, typer.Argument(min=1, help="Number of the turn; `show` has it.")],
    question: Annotated[bool, typer.Option("--question", help="Only what the user said.")] = False,
    answer: Annotated[bool, typer.Option("--answer", help="Only what was answered.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete what was said in a turn. The turn stays, and the audit log notes the deletion."""
    lines: list[Line] = ["question"] if question else []
    lines += ["answer"] if answer else []
    async with open_control(settings) as control:
        found = await control.send(calls.redact(number, turn, *(lines or ("question", "answer"))))
    print_result("turns", [found], f"taken back of turn {turn}: {', '.join(found.redacted)}", as_json=as_json)


@app.command()
@operation
async def erase(
    settings: Settings,
    mac: Mac,
    as_json: AsJson = False,
) -> None:
    """Delete all conversations, events and usage of a device. Switch it off before."""
    name = read_mac(mac)
    async with open_control(settings) as control:
        gone = await control.send(calls.erase(name))
    counts = (plural(gone.conversations, "conversation"), plural(gone.events, "event"), f"{gone.usage} days of usage")
    text = f"deleted of {name}: {', '.join(counts)}"
    print_result("devices", [{"mac": name, **gone.model_dump()}], text, as_json=as_json)


@app.command()
@operation
async def watch(
    settings: Settings,
    mac: Mac,
    as_json: AsJsonLines = False,
) -> None:
    """Show what is said on a device, from its next turn on, until interrupted. It is audited, and nothing is kept."""
    name = read_mac(mac)
    async with open_control(settings) as control:
        while True:
            async for kind, data in calls.watch(control, name):
                line = json.loads(data)
                typer.echo(json.dumps({"kind": kind, **line}) if as_json else _spoken(kind, line))


def _said(turn: ConversationTurn) -> tuple[str, str]:
    """Return question and answer as a table shows them."""
    texts = {"question": turn.question, "answer": turn.answer}
    question, answer = ("(redacted)" if name in turn.redacted else visible(text) for name, text in texts.items())
    return question, answer


def _spoken(kind: str, line: dict[str, Any]) -> str:
    at = datetime.fromisoformat(line["at"]).astimezone()
    text = line["data"].get("text") or line["data"].get("outcome", "")
    mark = {"turn.heard": ">", "turn.sentence": "<"}.get(kind, "-")
    return f"{at:%H:%M:%S} {mark} {visible(text)}"
