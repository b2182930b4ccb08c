"""Reads each endpoint once: FastAPI does so for every app, which takes most of its start."""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest


def read_routes_once(patch: pytest.MonkeyPatch) -> None:
    """Let apps that are built while this holds share what FastAPI reads of endpoints and models."""
    from fastapi import routing

    read: Any = routing._populate_api_route_state
    make: Any = routing.create_model_field
    look_up = routing._extract_endpoint_context
    states: dict[tuple[Any, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    fields: dict[tuple[str, Any, str], Any] = {}
    places: dict[Any, Any] = {}

    def populate(route: Any, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        # A function that an app makes anew is another one each time, and to keep it would keep the app.
        if (function := getattr(endpoint, "__func__", None)) is None:
            read(route, path, endpoint, **options)
            return
        known = states.setdefault((function, path), [])
        state = next((state for before, state in known if before == options), None)
        if state is None:
            first = SimpleNamespace()
            read(first, path, endpoint, **options)
            state = vars(first)
            state["endpoint"] = state["dependant"].call = None
            known.append((options, state))
        dependant = dataclasses.replace(state["dependant"], call=endpoint)
        vars(route).update(state, endpoint=endpoint, dependant=dependant)

    def create_model_field(name: str, type_: Any, mode: Any = "validation") -> Any:
        key = (name, type_, mode)
        if key not in fields:
            fields[key] = make(name=name, type_=type_, mode=mode)
        return fields[key]

    def extract_endpoint_context(function: Any) -> Any:
        key = getattr(function, "__func__", None)
        if key is None:
            return look_up(function)
        if key not in places:
            places[key] = look_up(key)
        return places[key]

    patch.setattr(routing, "_populate_api_route_state", populate)
    patch.setattr(routing, "create_model_field", create_model_field)
    patch.setattr(routing, "_extract_endpoint_context", extract_endpoint_context)
