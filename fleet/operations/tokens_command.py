"""`fleet tokens`: manages the bearer tokens of people and programs that act on devices through the api."""

from typing import Annotated

import typer

from fleet.adapters.files.operator_tokens import SCOPES, OperatorTokens, tokens_path
from fleet.ground.settings import Settings
from fleet.operations.connect import operation
from fleet.operations.listing import AsJson, print_list

app = typer.Typer(help="Operators' tokens: new, list, revoke.", no_args_is_help=True)


@app.command()
@operation
async def new(
    settings: Settings,
    scope: Annotated[
        list[str], typer.Option(metavar="<str>", help=f"Permission of the token: {', '.join(SCOPES)}; may be repeated.")
    ],
    name: Annotated[str, typer.Argument(help="Holder of the token, for the log; empty: the next number.")] = "",
) -> None:
    """Make a token and print it. Only its hash is stored. Every api that reads the file accepts it at once."""
    scopes = {part.strip() for text in scope for part in text.split(",") if part.strip()}
    typer.echo(_tokens(settings).add(name, frozenset(scopes)))


@app.command("list")
@operation
async def list_tokens(settings: Settings, as_json: AsJson = False) -> None:
    """List the holders of tokens and the permissions of their tokens."""
    rows = [(one.name, ", ".join(sorted(one.scopes))) for one in _tokens(settings).read()]
    print_list("tokens", ("name", "scopes"), rows, as_json=as_json, heading=False)


@app.command()
@operation
async def revoke(
    settings: Settings, name: Annotated[str, typer.Argument(help="Holder of the token, as in `fleet tokens list`.")]
) -> int:
    """Revoke a token at once."""
    found = _tokens(settings).remove(name)
    typer.echo(f"{name} {'is revoked' if found else 'has no token'}")
    return 0 if found else 1


def _tokens(settings: Settings) -> OperatorTokens:
    return OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
