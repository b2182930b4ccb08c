"""`fleet tokens`: bearer tokens of people and programs, over control or in the operators' file.

Tokens of control act on its API. The file has the tokens of the api and the gateway, and is the way into control when
its database or all of its tokens are lost.
"""

from typing import Annotated, Any

import typer

from fleet.adapters.files.operator_tokens import MEANINGS, OperatorTokens, tokens_path
from fleet.client import access
from fleet.core.permissions import EVERY_SCOPE
from fleet.ground.settings import Settings
from fleet.ground.terminal import itemised, plural, visible
from fleet.operations.connect import operation
from fleet.operations.control_access import find_control
from fleet.operations.inputs import checked
from fleet.operations.json_output import AsJson, print_json, print_result
from fleet.operations.listing import print_list
from fleet.operations.named_objects import find_token
from fleet.wire.control.tokens import NewToken

app = typer.Typer(help="Tokens of people and programs: new, list, revoke.", no_args_is_help=True)

InFile = Annotated[
    bool,
    typer.Option("--file", "--direct", help="Use FLEET_OPERATOR_TOKENS_FILE, also where a control is known."),
]
_COLUMNS = ("name", "scopes", "created", "expires", "last_used")


@app.command(epilog=itemised("Scopes:", (f"`{scope}`: {meaning}" for scope, meaning in MEANINGS.items())))
@operation
async def new(
    settings: Settings,
    scope: Annotated[
        list[str], typer.Option(metavar="<str>", help="What the token may do, of the scopes below; may be repeated.")
    ],
    name: Annotated[str, typer.Argument(help="Holder of the token, for the log; empty in the file: a number.")] = "",
    expires: Annotated[str, typer.Option(help="When a token of control ends, such as 2027-12-31T00:00:00Z.")] = "",
    in_file: InFile = False,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it; only its hash is stored. It counts at once.

    Control makes it if one is known. Tokens with a scope of the api or the gateway are made in the operators' file.
    """
    scopes = {part.strip() for text in scope for part in text.split(",") if part.strip()}
    async with find_control(settings, direct=in_file or not scopes <= EVERY_SCOPE) as control:
        if control is None:
            token = _tokens(settings).add(name, frozenset(scopes))
            entry: dict[str, Any] = {"name": name, "scopes": sorted(scopes), "token": token}
        else:
            wanted = checked(NewToken, {"name": name, "scopes": sorted(scopes), "expires": expires or None})
            entry = (await control.send(access.make_token(wanted))).model_dump(mode="json")
    print_result("tokens", [entry], entry["token"] or "", as_json=as_json)


@app.command("list")
@operation
async def list_tokens(settings: Settings, in_file: InFile = False, as_json: AsJson = False) -> None:
    """List the holders of tokens and the permissions of their tokens: of control if one is known, else of the file."""
    kept = _tokens(settings).read()
    async with find_control(settings, direct=in_file) as control:
        if control is None:
            rows = [(one.name, ", ".join(sorted(one.scopes))) for one in kept]
            print_list("tokens", ("name", "scopes"), rows, as_json=as_json, heading=False)
            return
        found = [one async for page in control.pages(access.tokens()) for one in page.items]
    if as_json:
        print_json("tokens", found)
    else:
        named = [(one.name, ", ".join(one.scopes), one.created, one.expires, one.last_used) for one in found]
        print_list("tokens", _COLUMNS, named, as_json=False)
    if kept:
        typer.echo(f"the operators' file has {plural(len(kept), 'token')} more: --file", err=True)


@app.command()
@operation
async def revoke(
    settings: Settings,
    name: Annotated[str, typer.Argument(help="Holder of the token, as in `fleet tokens list`.")],
    in_file: InFile = False,
    as_json: AsJson = False,
) -> int:
    """Revoke the token of control and that of the operators' file at once; with --file only the latter."""
    found = False
    async with find_control(settings, direct=in_file) as control:
        token = await find_token(control, name) if control is not None else None
        if control is not None and token is not None:
            await control.send(access.revoke_token(token.id))
            found = True
    found = _tokens(settings).remove(name) or found
    text = f"{visible(name)} {'is revoked' if found else 'has no token'}"
    print_result("tokens", [{"name": name, "revoked": found}], text, as_json=as_json)
    return 0 if found else 1


def _tokens(settings: Settings) -> OperatorTokens:
    return OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
