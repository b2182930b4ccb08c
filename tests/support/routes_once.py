"""Reads the signature of each endpoint once: FastAPI does so for every app, which takes most of its start."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest


def read_routes_once(patch: pytest.MonkeyPatch) -> None:
    """Let apps that are built while this holds share what FastAPI reads of endpoints and models."""
    from fastapi import routing
    from fastapi.dependencies.models import Dependant

    read, make = routing.get_dependant, routing.create_model_field
    dependants: dict[tuple[Any, str], Dependant] = {}
    fields: dict[tuple[str, Any, str], Any] = {}

    def get_dependant(*, path: str, call: Callable[..., Any], **more: Any) -> Dependant:
        key = (getattr(call, "__func__", call), path)
        if key not in dependants:
            dependants[key] = read(path=path, call=call, **more)
        kept = dependants[key]
        return dataclasses.replace(kept, call=call, dependencies=list(kept.dependencies))

    def create_model_field(name: str, type_: Any, mode: Any = "validation") -> Any:
        key = (name, type_, mode)
        if key not in fields:
            fields[key] = make(name=name, type_=type_, mode=mode)
        return fields[key]

    patch.setattr(routing, "get_dependant", get_dependant)
    patch.setattr(routing, "create_model_field", create_model_field)
