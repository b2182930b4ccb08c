"""`fleet providers`: the catalogue of endpoints that agents name, over control. Keys are never arguments."""

import base64
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.client import providers
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.inputs import checked, read_secret
from fleet.operations.json_output import AsJson, print_json, print_result
from fleet.operations.listing import print_list
from fleet.operations.named_objects import find_provider
from fleet.wire.control.providers import NewProvider, Provider, ProviderChange, VoiceTrial

app = typer.Typer(
    help="Providers that agents name: list, add, change, set-key, test, speak, remove.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="Name of the provider.")]
KeyFile = Annotated[Path | None, typer.Option(help="File with the API key; - is the standard input.")]
_BASE_URL = typer.Option(help="Address of the endpoint, such as https://llm.example/v1.")
_MODEL = typer.Option(help="Its model, where an agent names none.")
_SAMPLE_RATE = typer.Option(min=0, help="Of a voice's audio in Hz; 0: TTS_SAMPLE_RATE.")
_STDIN = Path("-")
_COLUMNS = ("name", "kind", "adapter", "base_url", "model", "has_key", "voices")


@app.command("list")
@operation
async def list_providers(settings: Settings, as_json: AsJson = False) -> None:
    """List the providers. Keys are never shown."""
    async with open_control(settings) as control:
        found = [one async for page in control.pages(providers.listing()) for one in page.items]
    if as_json:
        print_json("providers", found)
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
    base_url: Annotated[str, _BASE_URL] = "",
    adapter: Annotated[str, typer.Option(help="openai, offline, or the name of an installed plugin.")] = "openai",
    model: Annotated[str, _MODEL] = "",
    voices: Annotated[
        list[str] | None,
        typer.Option("--voice", metavar="<str>", help="A voice that agents may name; may be repeated. None: any."),
    ] = None,
    sample_rate: Annotated[int, _SAMPLE_RATE] = 0,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Add a provider."""
    wanted = {"name": name, "kind": kind, "adapter": adapter, "base_url": base_url, "model": model}
    more = {"voices": voices or [], "sample_rate": sample_rate, "key": read_secret(key_file) if key_file else ""}
    call = providers.add(checked(NewProvider, {**wanted, **more}))
    async with open_control(settings) as control:
        _report(await control.send(call), "is added", as_json=as_json)


@app.command()
@operation
async def change(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    name: Name,
    base_url: Annotated[str | None, _BASE_URL] = None,
    model: Annotated[str | None, _MODEL] = None,
    voices: Annotated[
        list[str] | None,
        typer.Option("--voice", metavar="<str>", help="Replaces all voices; may be repeated. An empty one: any."),
    ] = None,
    sample_rate: Annotated[int | None, _SAMPLE_RATE] = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Change a provider; what is not named stays. It counts from the next turn on."""
    wanted: dict[str, Any] = {"base_url": base_url, "model": model, "sample_rate": sample_rate}
    wanted["voices"] = None if voices is None else [voice for voice in voices if voice]
    wanted["key"] = read_secret(key_file) if key_file else None
    await _change(settings, name, wanted, "is changed", as_json=as_json)


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
    text = "has no key" if clear else "has a new key"
    await _change(settings, name, {"key": "" if clear else read_secret(file)}, text, as_json=as_json)


@app.command("test")
@operation
async def prove(settings: Settings, name: Name, as_json: AsJson = False) -> int:
    """Ask the endpoint of a provider for its models. Exit code 1: it did not answer."""
    async with open_control(settings) as control:
        proof = await control.send(providers.prove((await find_provider(control, name)).id))
    if as_json:
        print_json("proofs", [proof])
    else:
        state = f"answered in {proof.seconds:g} s" if proof.reachable else "did not answer"
        typer.echo(f"{visible(name)} {state}{f': {visible(proof.detail)}' if proof.detail else ''}")
        for model in proof.models:
            typer.echo(f"  {visible(model)}")
    return 0 if proof.reachable else 1


@app.command()
@operation
async def speak(
    settings: Settings,
    name: Name,
    text: Annotated[str, typer.Argument(help="What the voice reads.")],
    file: Annotated[Path, typer.Option("--out", help="File for the sound, a WAV file.")],
    voice: Annotated[str, typer.Option(help="Name of the voice at its provider; empty for the first one.")] = "",
    as_json: AsJson = False,
) -> None:
    """Let the voice of a provider read a text, and write it to a file."""
    trial = checked(VoiceTrial, {"text": text, "voice": voice})
    async with open_control(settings) as control:
        sample = await control.send(providers.speak((await find_provider(control, name)).id, trial))
    file.write_bytes(base64.b64decode(sample.wav))
    report = f"{visible(name)} began after {sample.first_seconds:g} s, and was ready after {sample.seconds:g} s"
    took = {"name": name, "first_seconds": sample.first_seconds, "seconds": sample.seconds}
    print_result("providers", [took], report, as_json=as_json)


@app.command()
@operation
async def remove(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Delete a provider that no agent names."""
    async with open_control(settings) as control:
        found = await find_provider(control, name)
        await control.send(providers.remove(found.id))
    _report(found, "is removed", as_json=as_json)


async def _change(settings: Settings, name: str, wanted: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Change the fields of a provider that are not None.

    Raises:
        ConfigError: There are none, or one is wrong.
    """
    named = {field: value for field, value in wanted.items() if value is not None}
    if not named:
        raise ConfigError("nothing to change: --base-url, --model, --voice, --sample-rate or --key-file")
    body = checked(ProviderChange, named)
    async with open_control(settings) as control:
        found = await find_provider(control, name)
        changed = await control.send(providers.change(found.id, body))
    _report(changed, text, as_json=as_json)


def _report(provider: Provider, text: str, *, as_json: bool) -> None:
    print_result("providers", [provider], f"{visible(provider.name)} {text}", as_json=as_json)
