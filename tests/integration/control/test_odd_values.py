"""Numbers, texts and times that no answer could show: they are refused, and what is stored already is shown."""

import itertools
import json

import pytest
from sqlalchemy import text

from tests.support.control_server import ControlStage

MAC = "02:00:00:00:00:01"
JSON = {"Content-Type": "application/json"}


ODD = ("NaN", "-Infinity", "1e999", '"\\ud800"', '{"\\udfff": 1}')
BODIES = {
    "POST /v1/devices": f'{{"mac": "{MAC}", "attributes": {{"a": [ODD]}}}}',
    f"PATCH /v1/devices/{MAC}": '{"attributes": {"a": ODD}}',
    "POST /v1/providers": '{"name": "house", "kind": "chat", "key": ODD}',
    "POST /v1/agents": '{"name": "kids", "draft": {"prompt": ODD}}',
    f"POST /v1/devices/{MAC}/tools/self.x:call": '{"arguments": {"a": ODD}}',
}


async def test_a_body_with_what_cannot_be_shown_is_refused(stage: ControlStage) -> None:
    for (verb, body), odd in itertools.product(BODIES.items(), ODD):
        answer = await stage.ask(verb, content=body.replace("ODD", odd), headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), f"{verb} {odd}: {answer.text}"
        assert answer.json()["detail"].startswith("body: ")


async def test_an_import_names_lines_with_what_cannot_be_shown(stage: ControlStage) -> None:
    lines = [f'{{"mac": "{MAC}", "attributes": {{"a": {odd}}}}}' for odd in ("NaN", "1e999", '{"\\ud800": 1}', "1")]
    cells = [f'{MAC},"{line[line.index("attributes") + 13 : -1].replace(chr(34), chr(34) * 2)}"' for line in lines]
    for kind, rows in (("application/x-ndjson", ["", *lines]), ("text/csv", ["mac,attributes", *cells])):
        answer = await stage.ask("POST /v1/devices:import", content="\n".join(rows), headers={"Content-Type": kind})
        assert [fault["line"] for fault in answer.json()["errors"]] == [2, 3, 4], answer.text
    assert (await stage.ask(f"GET /v1/devices/{MAC}")).json()["attributes"] == {"a": 1}


async def test_what_an_earlier_version_stored_is_shown(stage: ControlStage) -> None:
    await stage.ask("POST /v1/devices", json={"mac": MAC})
    stored, shown = '{"b\\ud800": "\\ud83d\\ude00\\udc00"}', {"b?": "😀?"}
    if stage.database.is_sqlite:  # PostgreSQL takes no such numbers
        stored, shown = f'{{"a": [NaN, -Infinity], {stored[1:]}', {"a": [None, None], **shown}
    async with stage.database.writing() as connection:
        await connection.execute(text("UPDATE device SET attributes = :stored"), {"stored": stored})
        columns = "tenant, at, actor, source, action, object, request, after"
        values = f"INSERT INTO audit ({columns}) VALUES (1, 1, '', '', '', 'odd', '', :stored)"
        await connection.execute(text(values), {"stored": stored})
    assert (await stage.ask(f"GET /v1/devices/{MAC}")).json()["attributes"] == shown
    assert (await stage.ask("GET /v1/devices")).json()["items"][0]["attributes"] == shown
    exported = (await stage.ask("GET /v1/devices:export?format=ndjson")).text
    assert json.loads(exported, parse_constant=pytest.fail)["attributes"] == shown
    assert "NaN" not in (await stage.ask("GET /v1/devices:export")).text
    changed = await stage.ask(f"PATCH /v1/devices/{MAC}", json={"name": "a"})
    assert changed.json()["attributes"] == shown
    assert (await stage.ask("GET /v1/audit?object=odd")).json()["items"][0]["after"] == shown


ENDS = ("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "0001-01-01", "9999-12-31", "1969-12-31T23:59:59Z")
FRAMES = {
    "/v1/audit": ("since", "until"),
    "/v1/audit:export": ("since", "until"),
    "/v1/conversations": ("since", "before"),
    "/v1/conversations:export": ("since", "before"),
    "/v1/usage": ("since", "until"),
    f"/v1/devices/{MAC}/presence": ("since", "before"),
}


async def test_times_at_the_ends_of_the_calendar_are_refused(stage: ControlStage) -> None:
    await stage.ask("POST /v1/devices", json={"mac": MAC})
    for path, names in FRAMES.items():
        for name, time in itertools.product(names, ENDS):
            answer = await stage.ask(f"GET {path}", params={name: time})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), f"{path} {name} {time}"
        for name, time in itertools.product(names, ("1970-01-01", "9999-12-30")):
            answer = await stage.ask(f"GET {path}", params={name: time})
            assert answer.status_code == 200, f"{path} {name} {time}: {answer.text}"
    for time in ENDS:
        answer = await stage.ask("POST /v1/tokens", json={"name": "a", "scopes": ["devices:read"], "expires": time})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    last = {"name": "a", "scopes": ["devices:read"], "expires": "9999-12-30T00:00:00Z"}
    made = await stage.ask("POST /v1/tokens", json=last)
    assert (made.status_code, made.json()["expires"]) == (201, "9999-12-30T00:00:00.000Z")
    assert (await stage.ask("GET /v1/tokens")).status_code == 200
