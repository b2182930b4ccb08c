"""`fleet providers`: the catalogue of endpoints that agents name, over control. Keys are never arguments."""

from pathlib import Path
from typing import Annotated

import typer

from fleet.client import providers
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.inputs import checked, read_secret
from fleet.operations.listing import AsJson, print_json, print_list
from fleet.operations.named_objects import find_provider
from fleet.wire.control.providers import NewProvider, Provider, ProviderChange

app = typer.Typer(help="Providers that agents name: list, add, set-key, test, remove.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the provider.")]
_STDIN = Path("-")
_COLUMNS = ("name", "kind", "adapter", "base_url", "model", "has_key", "voices")


@app.command("list")
@operation
async def list_providers(settings: Settings, as_json: AsJson = False) -> None:
    """List the providers. Keys are never shown."""
    async with open_control(settings) as control:
        found = [one async for page in control.pages(providers.listing()) for one in page.items]
    if as_json:
        print_json("providers", (one.model_dump(mode="json") for one in found))
    else:
        rows = [
            (one.name, one.kind, one.adapter, one.base_url, one.model, str(one.has_key).lower(), ", ".join(one.voices))
            for one in found
        ]
        print_list("providers", _COLUMNS, rows, as_json=False)


@app.command()
@operation
async def add(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    name: Name,
    kind: Annotated[str, typer.Argument(help="chat, recognition or voice.")],
    base_url: Annotated[str, typer.Option(help="Address of the endpoint, such as https://llm.example/v1.")] = "",
    adapter: Annotated[str, typer.Option(help="openai, offline, or the name of an installed plugin.")] = "openai",
    model: Annotated[str, typer.Option(help="Its model, where an agent names none.")] = "",
    voices: Annotated[
        list[str] | None,
        typer.Option("--voice", metavar="<str>", help="A voice that agents may name; may be repeated. None: any."),
    ] = None,
    sample_rate: Annotated[int, typer.Option(min=0, help="Of a voice's audio in Hz; 0: TTS_SAMPLE_RATE.")] = 0,
    key_file: Annotated[Path | None, typer.Option(help="File with the API key; - is the standard input.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a provider."""
    wanted = {"name": name, "kind": kind, "adapter": adapter, "base_url": base_url, "model": model}
    more = {"voices": voices or [], "sample_rate": sample_rate, "key": read_secret(key_file) if key_file else ""}
    call = providers.add(checked(NewProvider, {**wanted, **more}))
    async with open_control(settings) as control:
        _report(await control.send(call), "is added", as_json=as_json)


@app.command("set-key")
@operation
async def set_key(
    settings: Settings,
    name: Name,
    file: Annotated[Path, typer.Argument(help="File with the API key; - is the standard input.")] = _STDIN,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the key instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replace the API key of a provider; it counts from the next turn on."""
    change = checked(ProviderChange, {"key": "" if clear else read_secret(file)})
    async with open_control(settings) as control:
        found = await find_provider(control, name)
        changed = await control.send(providers.change(found.id, change))
    _report(changed, "has no key" if clear else "has a new key", as_json=as_json)


@app.command("test")
@operation
async def prove(settings: Settings, name: Name, as_json: AsJson = False) -> int:
    """Ask the endpoint of a provider for its models. Exit code 1: it did not answer."""
    async with open_control(settings) as control:
        proof = await control.send(providers.prove((await find_provider(control, name)).id))
    if as_json:
        print_json("proofs", [proof.model_dump(mode="json")])
    else:
        state = f"answered in {proof.seconds:g} s" if proof.reachable else "did not answer"
        typer.echo(f"{visible(name)} {state}{f': {visible(proof.detail)}' if proof.detail else ''}")
        for model in proof.models:
            typer.echo(f"  {visible(model)}")
    return 0 if proof.reachable else 1


@app.command()
@operation
async def remove(settings: Settings, name: Name) -> None:
    """Delete a provider that no agent names."""
    async with open_control(settings) as control:
        await control.send(providers.remove((await find_provider(control, name)).id))
    typer.echo(f"{visible(name)} is removed")


def _report(provider: Provider, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json("providers", [provider.model_dump(mode="json")])
    else:
        typer.echo(f"{visible(provider.name)} {text}")
