"""`fleet agents`: drafts, published versions and who has which agent, over control."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.client import agents
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations import assignments_command
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.dry_runs import MostUsers, UsersDryRun, print_users
from fleet.operations.inputs import checked, read_document, with_fields
from fleet.operations.json_output import AsJson, print_json, print_result
from fleet.operations.listing import Value, print_list
from fleet.operations.named_objects import find_agent
from fleet.wire.control.agents import Agent, AgentChange, AgentVersion, NewAgent, Rollback, Trial
from fleet.wire.control.shapes import USUAL_MOST

app = typer.Typer(
    help="Agents: list, show, create, edit, try, publish, roll back, assign, remove.", no_args_is_help=True
)
app.add_typer(assignments_command.app)

Name = Annotated[str, typer.Argument(help="Name of the agent.")]
File = Annotated[
    Path | None, typer.Option("--file", help="The whole draft: .json or .toml; - reads JSON from the standard input.")
]
Fields = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="<str>", help="A field of the draft, such as voice.name=onyx; may be repeated."),
]
_COLUMNS = ("name", "live", "notes", "created")


@app.command("list")
@operation
async def list_agents(settings: Settings, as_json: AsJson = False) -> None:
    """List the agents. Live: the number of the version that counts, 0 while none was published."""
    async with open_control(settings) as control:
        found = [one async for page in control.pages(agents.listing()) for one in page.items]
    if as_json:
        print_json("agents", (one.model_dump(mode="json", exclude_none=True) for one in found))
    else:
        print_list("agents", _COLUMNS, ([getattr(one, name) for name in _COLUMNS] for one in found), as_json=False)


@app.command()
@operation
async def show(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Show an agent with the fields of its draft."""
    async with open_control(settings) as control:
        _show(await find_agent(control, name), as_json=as_json)


@app.command()
@operation
async def create(
    settings: Settings,
    name: Name,
    file: File = None,
    fields: Fields = None,
    notes: Annotated[str, typer.Option(help="Notes.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make an agent. It counts for nobody before it is published and assigned."""
    draft = with_fields(read_document(file) if file else {}, fields or ())
    wanted = checked(NewAgent, {"name": name, "notes": notes, "draft": draft})
    async with open_control(settings) as control:
        made = await control.send(agents.create(wanted))
    _report(made, f"{visible(made.name)} is a draft", as_json=as_json)


@app.command()
@operation
async def edit(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    name: Name,
    file: File = None,
    fields: Fields = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="<str>", help="A field to leave to the settings; may be repeated."),
    ] = None,
    notes: Annotated[str | None, typer.Option(help="New notes.")] = None,
    rename: Annotated[str | None, typer.Option(help="New name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change the draft, the notes or the name of an agent. The published version counts until `publish`."""
    wanted: dict[str, Any] = {"notes": notes, "name": rename}
    async with open_control(settings) as control:
        found = await find_agent(control, name)
        if file or fields or without:
            wanted["draft"] = with_fields(read_document(file) if file else _draft(found), fields or (), without or ())
        named = {field: value for field, value in wanted.items() if value is not None}
        if not named:
            raise ConfigError("nothing to change: --file, --set, --unset, --notes or --rename")
        call = agents.change(found.id, checked(AgentChange, named))
        changed = await control.send(call.of_version(found.version) if found.version else call)
    _report(changed, f"the draft of {visible(changed.name)} is changed", as_json=as_json)


@app.command()
@operation
async def publish(
    settings: Settings,
    name: Name,
    most: MostUsers = USUAL_MOST,
    dry_run: UsersDryRun = False,
    as_json: AsJson = False,
) -> None:
    """Let the draft count: from the next turn on, on all processes."""
    async with open_control(settings) as control:
        agent = await find_agent(control, name)
        if dry_run:
            print_users(await control.send(agents.preview_change(agent.id)), as_json=as_json)
            return
        made = await control.send(agents.publish(agent.id, most))
    _report(made, f"version {made.number} of {visible(name)} counts", as_json=as_json)


@app.command()
@operation
async def rollback(
    settings: Settings,
    name: Name,
    number: Annotated[int, typer.Argument(min=1, help="Number of the version that is to count again.")],
    most: MostUsers = USUAL_MOST,
    dry_run: UsersDryRun = False,
    as_json: AsJson = False,
) -> None:
    """Let an earlier version count again; the draft stays."""
    number = checked(Rollback, {"number": number}).number
    async with open_control(settings) as control:
        agent = await find_agent(control, name)
        if dry_run:
            print_users(await control.send(agents.preview_change(agent.id)), as_json=as_json)
            return
        made = await control.send(agents.roll_back(agent.id, number, most))
    _report(made, f"version {made.number} of {visible(name)} counts", as_json=as_json)


@app.command()
@operation
async def versions(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """List the published versions of an agent, the newest first."""
    async with open_control(settings) as control:
        agent = await find_agent(control, name)
        found = [one async for page in control.pages(agents.versions(agent.id)) for one in page.items]
    if as_json:
        print_json("versions", (one.model_dump(mode="json", exclude_none=True) for one in found))
    else:
        rows = [(one.number, str(one.live).lower(), one.author, one.created) for one in found]
        print_list("versions", ("number", "live", "author", "created"), rows, as_json=False)


@app.command("try")
@operation
async def try_draft(
    settings: Settings,
    name: Name,
    text: Annotated[str, typer.Argument(help="What to say to the agent.")],
    as_json: AsJson = False,
) -> None:
    """Let the model of the draft answer a text. No tool runs, and nothing is kept."""
    text = checked(Trial, {"text": text}).text
    async with open_control(settings) as control:
        answer = await control.send(agents.try_draft((await find_agent(control, name)).id, text))
    print_result("answers", [answer], visible(answer.text), as_json=as_json)


@app.command()
@operation
async def remove(
    settings: Settings,
    name: Name,
    most: MostUsers = USUAL_MOST,
    dry_run: UsersDryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete an agent with its versions; its devices get the next agent that is theirs."""
    async with open_control(settings) as control:
        found = await find_agent(control, name)
        if dry_run:
            print_users(await control.send(agents.preview_change(found.id, deleted=True)), as_json=as_json)
            return
        await control.send(agents.remove(found.id, most))
    _report(found, f"{visible(name)} is removed", as_json=as_json)


def _draft(agent: Agent) -> dict[str, Any]:
    """Return the fields that a draft sets."""
    whole = agent.draft.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in whole.items() if value != {}}


def _show(agent: Agent, *, as_json: bool) -> None:
    if as_json:
        print_json("agents", [{**agent.model_dump(mode="json"), "draft": _draft(agent)}])
        return
    rows: list[tuple[str, Value]] = [(name, getattr(agent, name)) for name in _COLUMNS]
    for name, value in _draft(agent).items():
        parts = {f"{name}.{part}": one for part, one in value.items()} if isinstance(value, dict) else {name: value}
        rows += [(field, str(one)) for field, one in parts.items()]
    print_list("agent", ("field", "value"), rows, as_json=False, heading=False)


def _report(changed: Agent | AgentVersion, text: str, *, as_json: bool) -> None:
    what = "agents" if isinstance(changed, Agent) else "versions"
    print_result(what, [changed.model_dump(mode="json", exclude_none=True)], text, as_json=as_json)
