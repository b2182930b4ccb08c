"""`fleet certs`: certificates for trying things out."""

from pathlib import Path
from typing import Annotated

import typer

from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.operations.certificates import CA, SERVER, SERVER_KEY, make_certificates

app = typer.Typer(help="Certificates for simulators.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `dev` a command of its own while it is the only one."""


@app.command()
def dev(
    names: Annotated[list[str], typer.Argument(help="Host names and IP addresses by which the server is reached.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the files.")] = Path("certs"),
) -> None:
    """Make a private authority and a server certificate from it, for simulators; real boards do not trust it.

    A folder that has an authority keeps it. No file is overwritten.
    """
    try:
        written = make_certificates(folder, names)
    except ConfigError as error:
        typer.echo(f"fleet: {error}", err=True)
        raise typer.Exit(runtime.EXIT_MISCONFIGURED) from error
    typer.echo(f"wrote {', '.join(str(path) for path in written)}")
    typer.echo(f"server:     FLEET_TLS_CERT={folder / SERVER} FLEET_TLS_KEY={folder / SERVER_KEY} fleet up")
    typer.echo(f"simulators: fleet sim --ca {folder / CA} --ota https://{names[0]}:8443/xiaozhi/ota/")
