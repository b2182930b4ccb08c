"""Calls about the catalogue of providers."""

from pydantic import SecretStr, field_serializer

from fleet.client.call import Call, Nothing
from fleet.wire.control.providers import (
    NewProvider,
    Provider,
    ProviderChange,
    ProviderProof,
    VoiceSample,
    VoiceTrial,
)
from fleet.wire.control.shapes import ListPage


class _SentProvider(NewProvider):
    """A provider whose key is written into the request, and nowhere else."""

    @field_serializer("key", when_used="json")
    def _written(self, key: SecretStr) -> str:
        return key.get_secret_value()


class _SentChange(ProviderChange):
    """A change whose key is written into the request, and nowhere else."""

    @field_serializer("key", when_used="json")
    def _written(self, key: SecretStr | None) -> str | None:
        return None if key is None else key.get_secret_value()


def listing(limit: int = 500) -> Call[ListPage[Provider]]:
    """List providers, without their keys."""
    return Call("GET", "/providers", ListPage[Provider], {"limit": limit})


def add(provider: NewProvider) -> Call[Provider]:
    """Add a provider."""
    body = _SentProvider.model_validate(provider.model_dump(exclude_unset=True))
    return Call("POST", "/providers", Provider, body=body)


def change(provider: int, wanted: ProviderChange) -> Call[Provider]:
    """Change a provider; an empty key removes it."""
    body = _SentChange.model_validate(wanted.model_dump(exclude_unset=True))
    return Call("PATCH", f"/providers/{provider}", Provider, body=body)


def remove(provider: int) -> Call[Nothing]:
    """Delete a provider that no agent names."""
    return Call("DELETE", f"/providers/{provider}", Nothing)


def prove(provider: int) -> Call[ProviderProof]:
    """Ask the endpoint of a provider for its models."""
    return Call("POST", f"/providers/{provider}:test", ProviderProof)


def speak(provider: int, trial: VoiceTrial) -> Call[VoiceSample]:
    """Let the voice of a provider read a text."""
    return Call("POST", f"/providers/{provider}:speak", VoiceSample, body=trial)
