"""`fleet tokens`: the bearer tokens of operators, people and programs that act on devices through the api."""

from typing import Annotated

import typer

from fleet.adapters.files.operator_tokens import SCOPES, OperatorTokens, tokens_path
from fleet.ground.settings import Settings
from fleet.operations.connect import run

app = typer.Typer(help="Operators' tokens: new, list, revoke.", no_args_is_help=True)


@app.command()
def new(
    scope: Annotated[list[str], typer.Option(help=f"What it allows; may be repeated. {', '.join(SCOPES)}.")],
    name: Annotated[
        str, typer.Argument(help="Who it is for; names them in the log. Without it they are numbered.")
    ] = "",
) -> None:
    """Make a token and print it, this once: only its hash is kept. It counts at once, in every api with the file."""

    async def work(settings: Settings) -> int:
        scopes = {part.strip() for text in scope for part in text.split(",") if part.strip()}
        typer.echo(_tokens(settings).add(name, frozenset(scopes)))
        return 0

    run(work)


@app.command("list")
def list_tokens() -> None:
    """Show who has a token, and what it allows."""

    async def work(settings: Settings) -> int:
        for operator in _tokens(settings).read():
            typer.echo(f"{operator.name}  {', '.join(sorted(operator.scopes))}")
        return 0

    run(work)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="Whose token; see `fleet tokens list`.")]) -> None:
    """Let a token count no more, from now on."""

    async def work(settings: Settings) -> int:
        found = _tokens(settings).remove(name)
        typer.echo(f"{name} {'is revoked' if found else 'has no token'}")
        return 0 if found else 1

    run(work)


def _tokens(settings: Settings) -> OperatorTokens:
    return OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
