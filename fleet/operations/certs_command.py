"""`fleet certs`: makes certificates for tests with simulators."""

from pathlib import Path
from typing import Annotated

import typer

from fleet.adapters.net.tls.private_authority import CA, SERVER, SERVER_KEY, make_certificates
from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.operations.json_output import AsJson, print_result

app = typer.Typer(help="Certificates for simulators.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Make `dev` a subcommand: with one command only, Typer would run it as `fleet certs`."""


@app.command()
def dev(
    names: Annotated[list[str], typer.Argument(help="Host names and IP addresses by which devices reach the server.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the files.")] = Path("certs"),
    as_json: AsJson = False,
) -> None:
    """Make a private authority and a server certificate for simulators. Real boards do not trust the authority.

    If the folder has an authority, the command uses it. No file is overwritten.
    """
    try:
        written = make_certificates(folder, names)
    except ConfigError as error:
        typer.echo(f"fleet: {error}", err=True)
        raise typer.Exit(runtime.EXIT_MISCONFIGURED) from error
    paths = [str(path) for path in written]
    text = (
        f"wrote {', '.join(paths)}\n"
        f"server:     FLEET_TLS_CERT={folder / SERVER} FLEET_TLS_KEY={folder / SERVER_KEY} fleet up\n"
        f"simulators: fleet sim --ca {folder / CA} --ota https://{names[0]}:8443/xiaozhi/ota/"
    )
    print_result("files", [{"path": path} for path in paths], text, as_json=as_json)
