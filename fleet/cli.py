"""The command `fleet`."""

import asyncio
import importlib.metadata
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, NoReturn

import typer

from fleet import DISTRIBUTION
from fleet.ground import log, runtime
from fleet.ground.errors import ConfigError, install_hint
from fleet.ground.settings import Settings, load
from fleet.ground.settings.logs import log_budget
from fleet.operations.health_command import DEFAULT_URL, LIMIT_SECONDS, health
from fleet.run.monitoring import watching
from fleet.run.site import Site, site

_BUILT_IN = ("up", "worker", "edge", "gateway", "api", "front", "health", "version", "--version")
_OPERATIONS = ("devices", "keys", "tokens", "certs", "doctor", "settings")
_WORKBENCH = ("sim", "conformance", "endurance")
_SETTINGS_HINT = (
    "Every setting is an environment variable, or a line of the TOML file that FLEET_CONFIG names: `fleet settings`."
)

app = typer.Typer(
    help="A self-hosted server for fleets of voice devices.",
    epilog=_SETTINGS_HINT,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

MqttUrl = Annotated[str | None, typer.Option(help="Broker, mqtt://host:port. [FLEET_MQTT_URL]")]
RedisUrl = Annotated[str | None, typer.Option(help="Redis or Valkey, redis://host:port/0. [FLEET_REDIS_URL]")]
LlmUrl = Annotated[str | None, typer.Option(help="OpenAI-compatible chat endpoint. [LLM_BASE_URL]")]
PublicHost = Annotated[str | None, typer.Option(help="Name or address for devices. [FLEET_PUBLIC_HOST]")]


def main() -> None:
    # To import the others takes as long as all that a role needs, and roles are started in a hurry.
    asked = next(iter(sys.argv[1:]), "")
    if asked not in (*_BUILT_IN, *_WORKBENCH):
        add_operators()
    if asked not in (*_BUILT_IN, *_OPERATIONS):
        add_workbench()
    app()


@app.command("up")
def run_up(
    mqtt_url: MqttUrl = None,
    redis_url: RedisUrl = None,
    llm_base_url: LlmUrl = None,
    public_host: PublicHost = None,
) -> None:
    """Run everything; what you do not name, it brings itself."""
    from fleet.run.up import up

    named = {"mqtt_url": mqtt_url, "redis_url": redis_url, "llm_base_url": llm_base_url, "public_host": public_host}
    _run(named, lambda settings: up(settings, _for_ever, typer.echo))


@app.command("worker")
def run_worker(mqtt_url: MqttUrl = None, redis_url: RedisUrl = None, llm_base_url: LlmUrl = None) -> None:
    """Run a worker: it owns shards, runs turns and calls tools."""
    from fleet.run.worker import worker

    named = {"mqtt_url": mqtt_url, "redis_url": redis_url, "llm_base_url": llm_base_url}
    _run(named, lambda settings: _role(settings, "worker", worker))


@app.command("edge")
def run_edge(mqtt_url: MqttUrl = None, redis_url: RedisUrl = None) -> None:
    """Run an edge: UDP audio, recognition, voices. Needs FLEET_UDP_PUBLIC, or a node or STUN servers that know it."""
    from fleet.run.edge import edge
    from fleet.run.public_address import AddressSources, find_public_address
    from fleet.run.speech import load_speech

    @asynccontextmanager
    async def open_edge(here: Site) -> AsyncIterator[None]:
        public = await find_public_address(AddressSources.of(here.settings))
        speech = await load_speech(here.settings)
        async with edge(here, speech, public=public):
            yield

    _run({"mqtt_url": mqtt_url, "redis_url": redis_url}, lambda settings: _role(settings, "edge", open_edge))


@app.command("api")
def run_api(redis_url: RedisUrl = None, public_host: PublicHost = None) -> None:
    """Run the api: bootstrap and health."""
    from fleet.run.api import api

    _run(
        {"redis_url": redis_url, "public_host": public_host},
        lambda settings: _role(settings, "api", api, broker=False),
    )


@app.command("gateway")
def run_gateway(redis_url: RedisUrl = None, llm_base_url: LlmUrl = None) -> None:
    """Run the gateway: the LLM Gateway WebSocket API. Needs LLM_BASE_URL; without Redis it brings its own."""
    from fleet.run.gateway import log_settings, stand_alone

    named = {"redis_url": redis_url, "llm_base_url": llm_base_url}
    _run(named, lambda settings: stand_alone(settings, _for_ever), log_settings)


@app.command("front")
def run_front(mqtt_url: MqttUrl = None, redis_url: RedisUrl = None) -> None:
    """Run the front: lets a broker without our plugin reach devices that never subscribe.

    With Redis it refuses revoked devices.
    """
    from fleet.run.front import front

    async def serve(settings: Settings) -> None:
        async with watching(settings, "front") as readiness, front(settings, readiness):
            with readiness.serving():
                await _for_ever()

    _run({"mqtt_url": mqtt_url, "redis_url": redis_url}, serve)


@app.command("demo-llm")
def run_demo_llm(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8010,
) -> None:
    """Run the demo model: an OpenAI-compatible server with rules instead of a language model."""
    from fleet.workbench.demo_llm.server import DemoLlmServer

    _run({}, lambda _: DemoLlmServer(host, port).run())


@app.command("health")
def run_health(
    url: Annotated[str, typer.Option(help="What to ask: a role's /readyz, or /healthz.")] = DEFAULT_URL,
    limit: Annotated[float, typer.Option(help="Longest time to wait, in seconds.")] = LIMIT_SECONDS,
) -> None:
    """Ask a role whether it is ready: exit code 0, or 1 and why not."""
    health(url, limit)


@app.command()
def version() -> None:
    """Show the version."""
    typer.echo(importlib.metadata.version(DISTRIBUTION))


def _show_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Do nothing beyond what the options do."""


def _run(
    named: dict[str, Any],
    serve: Callable[[Settings], Coroutine[None, None, None]],
    log_settings: Callable[[Settings], tuple[str, log.LogFormat]] = lambda one: (one.log_level, one.log_format),
) -> None:
    try:
        loaded = load(**named)
    except ConfigError as error:
        _fail(error)
    level, form = log_settings(loaded)
    log.configure(level, form, pii=loaded.log_pii, rate=log_budget(loaded.log_rate, level))
    sys.exit(runtime.run(lambda: serve(loaded)))


def add_operators() -> None:
    """Add the commands for who runs a site."""
    from fleet.operations import certs_command, devices_command, keys_command, tokens_command
    from fleet.operations.commands_reference import commands
    from fleet.operations.doctor.command import doctor
    from fleet.operations.settings_command import settings

    app.add_typer(devices_command.app, name="devices")
    app.add_typer(keys_command.app, name="keys")
    app.add_typer(tokens_command.app, name="tokens")
    app.add_typer(certs_command.app, name="certs")
    app.command("doctor")(doctor)
    app.command("settings")(settings)
    app.command("commands")(commands)


def add_workbench() -> None:
    """Add the commands that are no part of a server."""
    try:
        from fleet.run.speech import synthesise
        from fleet.workbench.conformance.command import conformance
        from fleet.workbench.conformance.endurance_command import endurance
        from fleet.workbench.sim import command
    except ModuleNotFoundError as missing:
        needs = ConfigError(f"this needs the package {missing.name}: {install_hint('workbench')}")
        for name in _WORKBENCH:
            app.command(name)(lambda: _fail(needs))
    else:
        app.command("sim")(command.build(synthesise))
        app.command("conformance")(conformance)
        app.command("endurance")(endurance)


async def _role(
    settings: Settings, name: str, role: Callable[[Site], AbstractAsyncContextManager[object]], *, broker: bool = True
) -> None:
    async with (
        watching(settings, name) as readiness,
        site(settings, broker=broker, readiness=readiness) as here,
        role(here),
    ):
        with readiness.serving():
            await _for_ever()


async def _for_ever() -> None:
    await asyncio.Event().wait()


def _fail(error: ConfigError) -> NoReturn:
    typer.echo(f"fleet: {error}", err=True)
    raise SystemExit(runtime.EXIT_MISCONFIGURED)
