"""Builds control from the settings."""

import asyncio
import importlib
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fastapi import FastAPI

from fleet.adapters.files.local_token import make_local_token
from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.net.http.tls_server import HttpsServer
from fleet.adapters.net.own_address import own_address
from fleet.adapters.net.tls.certificate import followed_certificate
from fleet.adapters.net.tls.private_authority import CA, own_certificate
from fleet.adapters.redis.shards.control_lease import ControlLease
from fleet.ground.settings import Settings
from fleet.ground.settings.fields import ANY_ADDRESS
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import Backoff, isolate, keep_running, running, single_exception
from fleet.roles.control.settings import ControlSettings
from fleet.run.llm import open_trial_models
from fleet.run.resources import ProcessResources

log = logging.getLogger(__name__)


@asynccontextmanager
async def control(
    resources: ProcessResources, show: Callable[[str], None] = lambda _: None
) -> AsyncIterator[HttpServer]:
    """Run control during the block.

    Args:
        resources: Of the process.
        show: Called with the one-time code of the first owner or token, which must not go into a log.

    Raises:
        ConfigError: A setting is wrong, the port is taken, or another process has the file of SQLite.
        Unavailable: The database does not answer.
    """
    # Imported late: SQLAlchemy and alembic take as long as all else, and no other role needs them.
    from fleet.adapters.sql.open import open_database
    from fleet.adapters.sql.secrets import signing_key
    from fleet.roles.control.app import build_app, build_services
    from fleet.roles.control.leader.lead import LEASE_SECONDS, Leader
    from fleet.roles.control.leader.parts import background_parts

    settings = resources.settings
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(database_text(settings)))
        make_local_token(settings.data_dir)
        key = await signing_key(database)
        models = await stack.enter_async_context(open_trial_models(settings))
        services = build_services(
            slice_of(settings, ControlSettings), database, resources.store, key, models, resources.keys
        )
        server = await stack.enter_async_context(_serving(settings, build_app(services)))
        lease = ControlLease(resources.store, f"{socket.gethostname()}-{secrets.token_hex(4)}", LEASE_SECONDS)
        await stack.enter_async_context(running("uses of tokens", services.access.run))
        leader = Leader(lease, background_parts(services))
        await stack.enter_async_context(running("leader of control", leader.run))
        await stack.enter_async_context(running("followers", services.following.run))
        # Before the server drains: streams would hold it up.
        stack.callback(services.following.close)
        stack.enter_context(resources.readiness.requiring("listening", lambda: True))
        url = control_url(settings, server.port)
        log.info("control is up", extra={"url": url})
        if first := await services.first_token.make(database):
            show(_first_steps(url, first))
        yield server


@dataclass(slots=True)
class KeptControl:
    """Control beside other roles: whether its first start has ended, and its port while it runs."""

    tried: asyncio.Event = field(default_factory=asyncio.Event)
    port: int | None = None


@asynccontextmanager
async def keeping_control(resources: ProcessResources, show: Callable[[str], None]) -> AsyncIterator[KeptControl]:
    """Run control beside the block; while it cannot run, the rest of the process goes on, and it is tried again."""
    kept = KeptControl()

    async def attempt() -> None:
        try:
            # In a thread: the roles of this process must not stand still meanwhile.
            await asyncio.to_thread(importlib.import_module, "fleet.roles.control.app")
            async with control(resources, show) as server:
                kept.port = server.port
                kept.tried.set()
                await asyncio.Event().wait()
        except BaseExceptionGroup as group:
            raise single_exception(group) from group
        finally:
            kept.port = None
            kept.tried.set()

    async def kept_apart() -> None:
        # Whatever goes wrong in control, the other roles of this process go on.
        await isolate("control", attempt())

    async with running("control", lambda: keep_running("control", kept_apart, Backoff(first=2.0, limit=60.0))):
        yield kept


def database_text(settings: Settings) -> str:
    """Return the address of the database."""
    return settings.database_url or f"sqlite:///{settings.data_dir / 'control.db'}"


def control_url(settings: Settings, port: int) -> str:
    """Return where control is reached."""
    host = own_address() if settings.control_host in (ANY_ADDRESS, "::", "") else settings.control_host
    authority = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.control_tls else 'http'}://{authority}:{port}"


def _first_steps(url: str, code: str) -> str:
    insecure = " --insecure" if url.startswith("https") else ""
    body = f'\'{{"code": "{code}"}}\''
    return (
        f"Nobody owns control yet. To become its owner, enter this code at {url}/ within an hour: {code}\n"
        f"For programs it makes the first token instead:\n"
        f"  curl{insecure} {url}/v1/tokens:first -H 'Content-Type: application/json' -d {body}"
    )


def private_authority(settings: Settings) -> Path | None:
    """Return the authority of a certificate that control makes itself; None if it has another one, or none."""
    named = settings.control_cert or settings.tls_cert
    return settings.data_dir / "control-tls" / CA if settings.control_tls and named is None else None


@asynccontextmanager
async def _serving(settings: Settings, app: FastAPI) -> AsyncIterator[HttpServer]:
    host, port, proxies = settings.control_host, settings.control_port, settings.trusted_proxies
    async with AsyncExitStack() as stack:
        shown = None
        if settings.control_tls:
            chain, key = _certificate_files(settings)
            shown = await stack.enter_async_context(followed_certificate(chain, key))
        server = (
            HttpServer(app, host, port, proxies=proxies)
            if shown is None
            else HttpsServer(app, host, port, shown, proxies=proxies)
        )
        await stack.enter_async_context(running("control", server.run))
        try:
            yield server
        finally:
            await server.drain(settings.drain_seconds)


def _certificate_files(settings: Settings) -> tuple[Path, Path]:
    for chain, key in ((settings.control_cert, settings.control_key), (settings.tls_cert, settings.tls_key)):
        if chain is not None and key is not None:
            return chain, key
    names = {settings.control_host, settings.public_host, own_address(), "localhost", "127.0.0.1"}
    named = sorted(name for name in names if name and name not in (ANY_ADDRESS, "::"))
    return own_certificate(settings.data_dir / "control-tls", named, datetime.now(UTC))
