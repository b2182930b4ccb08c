"""The values that people write about devices: their forms and bounds."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from fleet.wire.topics import canonical_mac

DeviceState = Literal["registered", "waiting", "bound", "refused", "revoked"]
"""`registered`: known, not bound. `waiting`: it shows a code. `refused`: bootstrap gave it no credentials."""
MOST_TAGS = 50
"""Tags of a device."""
LARGEST_ATTRIBUTES = 8_000
"""Characters of the attributes of a device as JSON."""


def _storable(text: str) -> str:
    """PostgreSQL refuses the character 0."""
    if "\0" in text:
        raise ValueError("the character 0 is not allowed")
    return text


def _mac(text: str) -> str:
    mac = canonical_mac(text)
    if mac is None:
        raise ValueError("a MAC like 02:00:00:00:00:01 is expected")
    return mac


def _small(attributes: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    # The text of Python is no shorter than the JSON by more than quotes; it is only a bound.
    if len(repr(attributes)) > LARGEST_ATTRIBUTES:
        raise ValueError(f"attributes have at most {LARGEST_ATTRIBUTES} characters")
    return attributes


def _few(tags: Mapping[str, str]) -> Mapping[str, str]:
    if len(tags) > MOST_TAGS:
        raise ValueError(f"a device has at most {MOST_TAGS} tags")
    return tags


Mac = Annotated[str, StringConstraints(max_length=40), AfterValidator(_mac)]
Name = Annotated[str, StringConstraints(max_length=200), AfterValidator(_storable)]
Notes = Annotated[str, StringConstraints(max_length=4000), AfterValidator(_storable)]
Serial = Annotated[str, StringConstraints(max_length=64), AfterValidator(_storable)]
TagKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$")]
TagValue = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_storable)]
Tags = Annotated[dict[TagKey, TagValue], AfterValidator(_few)]
Attributes = Annotated[dict[str, JsonValue], AfterValidator(_small)]
QueryText = Annotated[str, Field(max_length=2000), AfterValidator(_storable)]
