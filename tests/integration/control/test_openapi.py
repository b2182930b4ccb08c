"""The description of the API says what the routes do."""

import re
from typing import Any

import pytest

from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from tests.support.control_server import ControlStage

MAC = "02:00:00:00:00:01"
PLACES = {"mac": MAC, "token": "999", "account": "999"}
"""Parts of paths that are not 1."""
EXPORTS = {
    "/v1/devices:export": {"format=csv": "text/csv", "format=ndjson": "application/x-ndjson"},
    "/v1/audit:export": {"": "application/x-ndjson"},
    "/v1/conversations:export": {"": "application/x-ndjson"},
    "/v1/events": {"limit=1": "application/json"},
}


@pytest.fixture
async def paths(stage: ControlStage) -> dict[str, dict[str, Any]]:
    """The operations by path and method."""
    found: dict[str, dict[str, Any]] = (await stage.ask("GET /v1/openapi.json", None)).json()["paths"]
    return found


def headers_of(operation: dict[str, Any]) -> set[str]:
    return {one["name"] for one in operation.get("parameters", []) if one["in"] == "header"}


async def test_content_types_are_those_of_the_answers(stage: ControlStage, paths: dict[str, dict[str, Any]]) -> None:
    for path, queries in EXPORTS.items():
        told = paths[path]["get"]["responses"]["200"]["content"]
        for query, kind in queries.items():
            answer = await stage.ask(f"GET {path}?{query}")
            assert answer.headers["content-type"].partition(";")[0] == kind
            assert kind in told
        assert ("application/json" in told) == (path == "/v1/events")
    for path in ("/v1/events", "/v1/devices/{mac}/transcript"):
        assert "text/event-stream" in paths[path]["get"]["responses"]["200"]["content"]
    taken = paths["/v1/devices:import"]["post"]["requestBody"]["content"]
    assert {"text/csv", "application/x-ndjson"} <= set(taken)


async def test_errors_are_named(stage: ControlStage, paths: dict[str, dict[str, Any]]) -> None:
    code = await stage.ask("POST /v1/tokens:first", None, json={"code": "WRONG", "name": "x"})
    kind = await stage.ask("POST /v1/devices:import", headers={"Content-Type": "text/plain"})
    await DeviceRows(stage.database, 1).add([NewDevice(MAC)])
    form = await stage.ask(f"GET /v1/devices/{MAC}/transcript", headers={"Accept": "text/csv"})
    for answer, (path, method) in {
        code: ("/v1/tokens:first", "post"),
        kind: ("/v1/devices:import", "post"),
        form: ("/v1/devices/{mac}/transcript", "get"),
    }.items():
        assert answer.status_code in (403, 406, 415)
        assert str(answer.status_code) in paths[path][method]["responses"]
    assert all("408" in one["responses"] for methods in paths.values() for one in methods.values())


async def test_headers_that_count_are_parameters(stage: ControlStage, paths: dict[str, dict[str, Any]]) -> None:
    await DeviceRows(stage.database, 1).add([NewDevice(MAC)])
    provider = {"name": "p", "kind": "chat", "adapter": "openai", "base_url": "http://127.0.0.1:1/v1"}
    for path, body in (("agents", {"name": "a"}), ("groups", {"name": "g"}), ("providers", provider)):
        assert (await stage.ask(f"POST /v1/{path}", json=body)).json()["id"] == 1
    await stage.ask("POST /v1/agents/1:publish")
    schemas = (await stage.ask("GET /v1/openapi.json", None)).json()["components"]["schemas"]
    for path, method, operation in ((path, *one) for path, methods in paths.items() for one in methods.items()):
        told = headers_of(operation)
        assert "X-Request-Id" in told
        if method == "get":
            assert ("Last-Event-ID" in told) == (path == "/v1/events")
            continue
        content = operation.get("requestBody", {}).get("content", {})
        [name] = [one["schema"]["$ref"].split("/")[-1] for one in content.values() if "$ref" in one["schema"]] or [""]
        example = schemas[name].get("examples", [{}])[0] if name else None
        filled = f"{method.upper()} {re.sub('{(.*?)}', lambda found: PLACES.get(found[1], '1'), path)}"
        answer = await stage.ask(filled, json=example, headers={"If-Match": "x"})
        assert (answer.json() if answer.content else {}).get("code") == "bad-etag" or "If-Match" not in told, filled
        assert "bad-etag" not in answer.text or "If-Match" in told, filled
        answer = await stage.ask(filled, json=example, headers={"Idempotency-Key": "a key"})
        assert ("bad-key" in answer.text and path != "/v1/devices:import") == ("Idempotency-Key" in told), filled


async def test_a_refused_method_names_those_of_the_path(stage: ControlStage) -> None:
    for verb, methods in {
        "DELETE /v1/tokens": "GET, POST",
        f"POST /v1/devices/{MAC}": "GET, PATCH",
        f"DELETE /v1/devices/{MAC}:bind": "GET, PATCH, POST",
        "POST /v1/devices:export": "GET",
    }.items():
        answer = await stage.ask(verb)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods), verb
