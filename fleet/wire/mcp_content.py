"""The parts of a tool's answer as text: texts unchanged, everything else by kind and size, without its data."""

import json
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, JsonValue, TypeAdapter, ValidationError

_LONGEST_LABEL = 64


def _text(value: object) -> object:
    return value if isinstance(value, str) else ""


_Text = Annotated[str, BeforeValidator(_text)]


class _Resource(BaseModel):
    uri: _Text = ""
    mimeType: _Text = ""
    text: _Text = ""
    blob: _Text = ""


class _Part(BaseModel):
    type: _Text = ""
    text: JsonValue = None
    data: _Text = ""
    mimeType: _Text = ""
    image: JsonValue = None
    """Firmware's own shape of an image: JSON in a string, with `mimeType` and `data` (device contract, section 6)."""
    resource: _Resource | None = None


_PART: TypeAdapter[_Part] = TypeAdapter(_Part)


def describe(entry: JsonValue) -> str:
    """Return one part of a tool's answer as text; empty for an empty part."""
    try:
        part = _PART.validate_python(entry)
    except ValidationError:
        return _plain(entry)
    match part.type:
        case "text":
            return _plain(part.text)
        case "":
            return _plain(entry if part.text is None else part.text)
        case "image":
            return _image(part)
        case "audio":
            return _label("audio", part.mimeType, part.data)
        case "resource" if part.resource is not None:
            return part.resource.text or _label("resource", part.resource.mimeType, part.resource.blob)
        case _:
            return _label("content of type", part.type, part.data)


def _plain(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _image(part: _Part) -> str:
    inner = part
    if part.image is not None:
        try:
            inner = _inner(part.image)
        except ValidationError:
            return "[image, damaged]"
    return _label("image", inner.mimeType, inner.data) if inner.data else "[image, damaged]"


def _inner(image: JsonValue) -> _Part:
    return _PART.validate_json(image) if isinstance(image, str) else _PART.validate_python(image)


def _label(kind: str, name: str, data: str) -> str:
    """Return `[image image/jpeg, 12 KB]`; the size is that of the data behind its base64."""
    shown = "".join(char if char.isprintable() else " " for char in name[:_LONGEST_LABEL]).strip()
    size = f", {-(-len(data) * 3 // 4096)} KB" if data else ""
    return f"[{kind} {shown}{size}]" if shown else f"[{kind}{size}]"
