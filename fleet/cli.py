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
from fleet.operations.json_output import AsJson, print_result
from fleet.run.announcement import announced
from fleet.run.monitoring import run_monitoring
from fleet.run.resources import ProcessResources, open_resources

_BUILT_IN = ("up", "worker", "edge", "gateway", "api", "front", "control", "health", "version", "--version")
_OPERATIONS = (
    *("devices", "groups", "agents", "providers", "events", "conversations", "usage", "audit", "memory", "reminders"),
    *("keys", "alerts", "jobs", "tokens", "certs", "db", "doctor", "settings"),
)
_WORKBENCH = ("sim", "conformance", "endurance")
_ANY_WORDS = {"ignore_unknown_options": True, "allow_extra_args": True}
_SETTINGS_HINT = "Set environment variables, or FLEET_CONFIG to the path of a TOML file: see `fleet settings`."

app = typer.Typer(
    help="A self-hosted server for fleets of voice devices.",
    epilog=_SETTINGS_HINT,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Of help that is not for a terminal, which must not be wrapped.
    context_settings={"terminal_width": 10_000},
)

MqttUrl = Annotated[str | None, typer.Option(help="Address of the broker, mqtt://host:port. [FLEET_MQTT_URL]")]
RedisUrl = Annotated[
    str | None, typer.Option(help="Address of Redis or Valkey, redis://host:port/0. [FLEET_REDIS_URL]")
]
LlmUrl = Annotated[str | None, typer.Option(help="OpenAI-compatible chat endpoint. [LLM_BASE_URL]")]
PublicHost = Annotated[
    str | None, typer.Option(help="Host name or address by which devices reach the server. [FLEET_PUBLIC_HOST]")
]


def main() -> None:
    # Import the other commands only if needed: importing them takes as long as importing a role.
    command = next(iter(sys.argv[1:]), "")
    if command not in (*_BUILT_IN, *_WORKBENCH):
        add_operator_commands()
    if command not in (*_BUILT_IN, *_OPERATIONS):
        add_workbench_commands()
    app()


@app.command("up")
def run_up(
    mqtt_url: MqttUrl = None,
    redis_url: RedisUrl = None,
    llm_base_url: LlmUrl = None,
    public_host: PublicHost = None,
) -> None:
    """Run all roles in one process, with an embedded broker, Redis and demo model in place of those not named."""
    from fleet.run.up import up

    named = {"mqtt_url": mqtt_url, "redis_url": redis_url, "llm_base_url": llm_base_url, "public_host": public_host}
    _run(named, lambda settings: up(settings, _wait_forever, typer.echo))


@app.command("worker")
def run_worker(mqtt_url: MqttUrl = None, redis_url: RedisUrl = None, llm_base_url: LlmUrl = None) -> None:
    """Run a worker. It owns shards, runs turns and calls tools."""
    from fleet.run.worker import worker

    named = {"mqtt_url": mqtt_url, "redis_url": redis_url, "llm_base_url": llm_base_url}
    _run(named, lambda settings: _serve_role(settings, "worker", worker))


@app.command("edge")
def run_edge(mqtt_url: MqttUrl = None, redis_url: RedisUrl = None) -> None:
    """Run an edge. It receives and sends UDP audio, recognises speech and synthesises answers.

    It needs its public address: set FLEET_UDP_PUBLIC, FLEET_NODE_NAME or FLEET_STUN_SERVERS.
    """
    from fleet.run.edge import edge
    from fleet.run.public_address import AddressSources, find_public_address
    from fleet.run.speech import load_speech

    @asynccontextmanager
    async def open_edge(resources: ProcessResources) -> AsyncIterator[None]:
        public = await find_public_address(AddressSources.of(resources.settings))
        speech = await load_speech(resources.settings)
        async with edge(resources, speech, public=public):
            yield

    _run({"mqtt_url": mqtt_url, "redis_url": redis_url}, lambda settings: _serve_role(settings, "edge", open_edge))


@app.command("api")
def run_api(redis_url: RedisUrl = None, public_host: PublicHost = None) -> None:
    """Run the api. It serves bootstrap requests of devices, requests of operators and health checks."""
    from fleet.run.api import api

    _run(
        {"redis_url": redis_url, "public_host": public_host},
        lambda settings: _serve_role(settings, "api", api, broker=False),
    )


@app.command("gateway")
def run_gateway(redis_url: RedisUrl = None, llm_base_url: LlmUrl = None) -> None:
    """Run the gateway. It serves the LLM Gateway WebSocket API. It needs LLM_BASE_URL.

    Without FLEET_REDIS_URL it uses the Redis of a fleet on this machine, or starts an embedded Redis.
    """
    from fleet.run.gateway import log_settings, run_standalone

    named = {"redis_url": redis_url, "llm_base_url": llm_base_url}
    _run(named, lambda settings: run_standalone(settings, _wait_forever), log_settings)


@app.command("front")
def run_front(mqtt_url: MqttUrl = None, redis_url: RedisUrl = None) -> None:
    """Run the front. It stands between devices and a broker without fleet's plugin, and subscribes for the devices.

    If FLEET_REDIS_URL is set, it refuses revoked devices.
    """
    from fleet.run.front import front

    async def serve(settings: Settings) -> None:
        async with run_monitoring(settings, "front") as readiness, front(settings, readiness):
            with readiness.serving():
                await _wait_forever()

    _run({"mqtt_url": mqtt_url, "redis_url": redis_url}, serve)


@app.command("control")
def run_control(redis_url: RedisUrl = None) -> None:
    """Run control. It serves the REST API, with the registry of devices in SQL (FLEET_DATABASE_URL)."""
    from fleet.run.control import control

    _run(
        {"redis_url": redis_url},
        lambda settings: _serve_role(
            settings, "control", lambda resources: control(resources, typer.echo), broker=False
        ),
    )


@app.command("demo-llm")
def run_demo_llm(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8010,
) -> None:
    """Run the demo model, an OpenAI-compatible server with rules instead of a language model."""
    from fleet.workbench.demo_llm.server import DemoLlmServer

    _run({}, lambda _: DemoLlmServer(host, port).run())


@app.command("health")
def run_health(
    url: Annotated[str, typer.Option(help="Address of a role's /readyz or /healthz.")] = DEFAULT_URL,
    limit: Annotated[float, typer.Option(help="Longest wait for an answer, in seconds.")] = LIMIT_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Check whether a role is ready. Exit code 0: ready; 1: not ready, with the reason."""
    health(url, limit, as_json=as_json)


@app.command()
def version(as_json: AsJson = False) -> None:
    """Show the version."""
    number = importlib.metadata.version(DISTRIBUTION)
    print_result("versions", [{"package": DISTRIBUTION, "version": number}], number, as_json=as_json)


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
    """Hold the options of `fleet` itself."""


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


def add_operator_commands() -> None:
    """Add the commands for operators."""
    from fleet.operations import (
        agents_command,
        alerts_command,
        certs_command,
        conversations_command,
        db_command,
        devices_command,
        firmware_command,
        groups_command,
        jobs_command,
        keys_command,
        memory_command,
        providers_command,
        reminders_command,
        tokens_command,
    )
    from fleet.operations.announce_command import announce
    from fleet.operations.audit_command import audit
    from fleet.operations.commands_reference import commands
    from fleet.operations.doctor.command import doctor
    from fleet.operations.events_command import events, usage
    from fleet.operations.settings_command import settings

    app.add_typer(devices_command.app, name="devices")
    app.add_typer(groups_command.app, name="groups")
    app.add_typer(jobs_command.app, name="jobs")
    app.command("announce")(announce)
    app.add_typer(firmware_command.app, name="firmware")
    app.add_typer(alerts_command.app, name="alerts")
    app.add_typer(agents_command.app, name="agents")
    app.add_typer(providers_command.app, name="providers")
    app.command("events")(events)
    app.add_typer(conversations_command.app, name="conversations")
    app.command("usage")(usage)
    app.command("audit")(audit)
    kept = {"memory": memory_command, "reminders": reminders_command, "keys": keys_command, "tokens": tokens_command}
    for name, command in {**kept, "certs": certs_command, "db": db_command}.items():
        app.add_typer(command.app, name=name)
    app.command("doctor")(doctor)
    app.command("settings")(settings)
    app.command("commands")(commands)


def add_workbench_commands() -> None:
    """Add the commands that test a server."""
    try:
        from fleet.run.speech import synthesise
        from fleet.workbench.conformance.command import conformance
        from fleet.workbench.conformance.endurance_command import endurance
        from fleet.workbench.sim import command
    except ModuleNotFoundError as missing:
        needs = ConfigError(f"this needs the package {missing.name}: {install_hint('workbench')}")
        for name in _WORKBENCH:
            # Whatever its options are: the reason stands before a complaint about them.
            app.command(name, context_settings=_ANY_WORDS)(lambda: _fail(needs))
    else:
        app.command("sim", epilog=command.EPILOG)(command.build(synthesise))
        app.command("conformance")(conformance)
        app.command("endurance")(endurance)


async def _serve_role(
    settings: Settings,
    name: str,
    role: Callable[[ProcessResources], AbstractAsyncContextManager[object]],
    *,
    broker: bool = True,
) -> None:
    async with (
        run_monitoring(settings, name) as readiness,
        open_resources(settings, broker=broker, readiness=readiness) as resources,
        announced(resources.store, name, readiness, resources.broker),
        role(resources),
    ):
        with readiness.serving():
            await _wait_forever()


async def _wait_forever() -> None:
    await asyncio.Event().wait()


def _fail(error: ConfigError) -> NoReturn:
    typer.echo(f"fleet: {error}", err=True)
    raise SystemExit(runtime.EXIT_MISCONFIGURED)
