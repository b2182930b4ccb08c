"""`/v1/providers`: the catalogue of endpoints that agents name. Keys come in, and never go out."""

import asyncio
import time
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Path, Request, Response

from fleet.adapters.sealing import Sealer
from fleet.adapters.sql.provider_rows import ProviderRow, ProviderRows
from fleet.adapters.sql.token_rows import NameTaken
from fleet.core.permissions import AGENTS_READ, PROVIDERS_WRITE
from fleet.ground.errors import ConfigError, FleetError
from fleet.roles.control.access import Who
from fleet.roles.control.agents.compiler import AgentCompiler, changed_fields
from fleet.roles.control.agents.voice_sample import sample_voice
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import VERSIONED, Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.versions import etag, expected_version
from fleet.wire.control.providers import (
    NewProvider,
    Provider,
    ProviderChange,
    ProviderProof,
    VoiceSample,
    VoiceTrial,
)
from fleet.wire.control.shapes import ListPage

MOST = 100
"""Providers of a tenant."""
TEST_SECONDS = 10.0
MOST_SAMPLES = 4
"""Voices of all tenants that are tried at a time."""
ProviderId = Annotated[int, Path(ge=1, le=2**53)]
_MOST_MODELS = 200
_MOST_NAMED = 10
"""Agents whose names an error lists."""
_PREFIXES = {"chat": "LLM", "recognition": "ASR", "voice": "TTS"}
"""Names of the kinds in messages and metrics."""
_KEY_NEEDED = "at another server the stored key is not sent: give its key, or an empty one"


class ProvidersRoutes:
    """Adds, changes and tests providers."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        self._compiler = AgentCompiler(services.database, services.store)
        self._speaking = 0
        routes.add("GET /providers", self.list_providers, AGENTS_READ)
        routes.add("POST /providers", self.create, PROVIDERS_WRITE, model=Provider, status=201)
        routes.add("GET /providers/{provider}", self.read, AGENTS_READ, model=Provider)
        routes.add("PATCH /providers/{provider}", self.change, PROVIDERS_WRITE, model=Provider, notes=VERSIONED)
        routes.add("DELETE /providers/{provider}", self.remove, PROVIDERS_WRITE, status=204, notes=VERSIONED)
        routes.add("POST /providers/{provider}:test", self.prove, PROVIDERS_WRITE)
        routes.add("POST /providers/{provider}:speak", self.speak, PROVIDERS_WRITE)

    async def list_providers(self, who: Who, limit: Limit = 50, cursor: Cursor = "") -> ListPage[Provider]:
        """Return the providers in the order in which they were added."""
        place = self._services.cursors.read(who, "providers", cursor)
        after = int(str(place[0])) if place else 0
        rows = await ProviderRows(self._services.database, who.tenant).page(after, limit + 1)
        more = self._services.cursors.write(who, "providers", [rows[limit - 1].id]) if len(rows) > limit else None
        return ListPage(items=[_provider(row) for row in rows[:limit]], next=more)

    async def create(self, body: NewProvider, who: Who, request: Request) -> Response:
        """Add a provider. Its key is encrypted at once, and never shown again."""
        _check(body.kind, body.adapter, body.base_url)
        secret = self._seal(body.key.get_secret_value())
        fields = body.model_dump(exclude={"key"}) | {"secret": secret}
        async with self._services.changes.begin(request) as change:
            rows = ProviderRows(change.sql, who.tenant)
            if await rows.count() >= MOST:
                raise Problem(409, "too-many", f"there may be {MOST} providers")
            try:
                row = await rows.add(**fields)
            except NameTaken as error:
                raise Problem(409, "name-taken", str(error)) from error
            await change.audit("provider.create", f"provider/{row.id}", before={}, after=_shown(row))
            return change.answer(_provider(row), status=201, headers={"ETag": etag(row.version)})

    async def read(self, provider: ProviderId, who: Who) -> Response:
        """Return a provider without its key."""
        row = await self._row(who.tenant, provider)
        headers = {"ETag": etag(row.version)}
        return Response(_provider(row).model_dump_json(), media_type="application/json", headers=headers)

    async def change(self, provider: ProviderId, body: ProviderChange, who: Who, request: Request) -> Response:
        """Change a provider; the agents that name it use it from the next turn on."""
        fields: dict[str, Any] = body.model_dump(exclude_unset=True, exclude_none=True, exclude={"key"})
        if body.key is not None:
            fields["secret"] = self._seal(body.key.get_secret_value())
        async with self._services.changes.begin(request) as change:
            rows = ProviderRows(change.sql, who.tenant)
            before = await rows.read(provider)
            after = await rows.change(provider, expected_version(request), **fields)
            if before is None or after is None:
                raise not_found("provider")
            _check(after.kind, after.adapter, after.base_url)
            if before.secret and body.key is None and _origin(before.base_url) != _origin(after.base_url):
                raise Problem(422, "key-needed", _KEY_NEEDED)
            old, new = changed_fields(_shown(before), _shown(after))
            if body.key is not None:
                new["key"] = "changed"
            await change.audit("provider.change", f"provider/{provider}", before=old, after=new)
            answer = change.answer(_provider(after), headers={"ETag": etag(after.version)})
        await self._compiler.publish(who.tenant, list(await self._compiler.naming(who.tenant, after.name)))
        return answer

    async def remove(self, provider: ProviderId, who: Who, request: Request) -> Response:
        """Delete a provider that no agent names."""
        row = await self._row(who.tenant, provider)
        if found := await self._compiler.naming(who.tenant, row.name):
            names = ", ".join(sorted(found.values())[:_MOST_NAMED])
            raise Problem(409, "in-use", f"agents name this provider: {names}")
        async with self._services.changes.begin(request) as change:
            if not await ProviderRows(change.sql, who.tenant).remove(provider, expected_version(request)):
                raise not_found("provider")
            await change.audit("provider.delete", f"provider/{provider}", before=_shown(row), after={})
            return change.answer(status=204)

    async def prove(self, provider: ProviderId, who: Who) -> ProviderProof:
        """Ask the endpoint for its models: this is free of charge, and shows whether address and key are right."""
        from fleet.adapters.model_endpoint import ModelEndpoint
        from fleet.adapters.model_list import list_models

        row = await self._row(who.tenant, provider)
        if not row.base_url:
            raise Problem(422, "no-endpoint", "this provider has no address that could be asked")
        begun, deadline = time.monotonic(), asyncio.get_running_loop().time() + TEST_SECONDS
        try:
            endpoint = ModelEndpoint(_PREFIXES[row.kind], row.base_url, self._unseal(row.secret) or None)
            try:
                models = await list_models(endpoint, deadline)
            finally:
                await endpoint.aclose()
        except FleetError as error:
            seconds = round(time.monotonic() - begun, 3)
            return ProviderProof(reachable=False, seconds=seconds, detail=str(error)[:500])
        seconds = round(time.monotonic() - begun, 3)
        detail = f"it does not list the model {row.model}" if row.model and models and row.model not in models else ""
        return ProviderProof(reachable=True, seconds=seconds, detail=detail, models=models[:_MOST_MODELS])

    async def speak(self, provider: ProviderId, body: VoiceTrial, who: Who) -> VoiceSample:
        """Let a voice read a text. Nothing of it is stored; what the endpoint charges is charged."""
        from fleet.adapters.speech.tts_openai import OpenAiTts

        row, settings = await self._row(who.tenant, provider), self._services.settings
        if row.kind != "voice" or row.adapter != "openai":
            raise Problem(422, "no-endpoint", "only a voice with an address can be heard here")
        if self._speaking >= MOST_SAMPLES:
            raise Problem(503, "busy", "too many voices are tried at a time", headers={"Retry-After": "5"})
        self._speaking += 1
        try:
            tts = OpenAiTts(
                row.base_url,
                self._unseal(row.secret) or None,
                row.model or settings.tts_model,
                (row.voices or [settings.tts_voice])[0],
                None,
                row.sample_rate or settings.tts_sample_rate,
                TEST_SECONDS,
            )
            try:
                return await sample_voice(tts, body)
            finally:
                await tts.aclose()
        except FleetError as error:
            raise Problem(502, "model-failed", str(error)[:500]) from error
        finally:
            self._speaking -= 1

    async def _row(self, tenant: int, provider: int) -> ProviderRow:
        row = await ProviderRows(self._services.database, tenant).read(provider)
        if row is None:
            raise not_found("provider")
        return row

    def _seal(self, key: str) -> str:
        try:
            return self._sealer.seal(key)
        except ConfigError as error:
            raise Problem(409, "no-secret-keys", str(error)) from error

    def _unseal(self, sealed: str) -> str:
        return self._sealer.unseal(sealed)

    @property
    def _sealer(self) -> Sealer:
        return Sealer.of(self._services.settings.secret_keys)


def _origin(base_url: str) -> tuple[str, str]:
    parts = urlsplit(base_url)
    return parts.scheme, parts.netloc


def _check(kind: str, adapter: str, base_url: str) -> None:
    """Check what belongs together.

    Raises:
        Problem: It does not (422).
    """
    if adapter == "openai" and not base_url:
        raise Problem(422, "invalid", "an endpoint needs base_url")
    if adapter == "offline" and kind == "chat":
        raise Problem(422, "invalid", "there is no offline chat model")


def _shown(row: ProviderRow) -> dict[str, Any]:
    """Return a provider for the audit."""
    return _provider(row).model_dump(exclude={"id"})


def _provider(row: ProviderRow) -> Provider:
    names = ("id", "name", "kind", "adapter", "base_url", "model", "voices", "sample_rate")
    return Provider(has_key=bool(row.secret), **{name: getattr(row, name) for name in names})
