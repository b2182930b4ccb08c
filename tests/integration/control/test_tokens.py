"""Tokens: the first one by a code, further ones, their limits, and what the audit log says of them."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError

from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.schema import TOKEN
from fleet.core.permissions import SCOPES
from fleet.core.rates import Rate
from tests.support.control_server import FULL, STRANGER, ControlStage, empty_control
from tests.support.memory_store import memory_store

JSON = {"Content-Type": "application/json"}


async def test_a_token_is_made_shown_once_and_revoked(stage: ControlStage) -> None:
    made = await stage.ask("POST /v1/tokens", json={"name": "shop", "scopes": ["audit:read", "devices:read"]})
    assert made.status_code == 201
    row = made.json()
    assert (await stage.ask(f"GET {made.headers['location']}")).json() == {
        key: value for key, value in row.items() if key != "token"
    }
    async with stage.database.reading() as connection:
        digests = (await connection.execute(select(TOKEN.c.digest).where(TOKEN.c.id == row["id"]))).scalars().all()
    assert digests == [hashlib.sha256(row["token"].encode()).hexdigest()]
    assert (await stage.ask("GET /v1/me", row["token"])).json()["scopes"] == ["audit:read", "devices:read"]
    assert (await stage.ask("GET /v1/tokens", row["token"])).status_code == 403
    await stage.services.access.note_uses()
    assert (await stage.ask(f"GET /v1/tokens/{row['id']}")).json()["last_used"] is not None
    assert (await stage.ask(f"DELETE /v1/tokens/{row['id']}")).status_code == 204
    assert (await stage.ask("GET /v1/me", row["token"])).status_code == 401
    log = (await stage.ask("GET /v1/audit")).json()["items"]
    assert [(one["action"], one["object"], one["actor"]) for one in log] == [
        ("token.revoke", f"token/{row['id']}", f"token:{FULL}"),
        ("token.create", f"token/{row['id']}", f"token:{FULL}"),
    ]
    assert log[1]["after"] == {"name": "shop", "scopes": ["audit:read", "devices:read"], "expires": None}
    assert log[1]["request"] == made.headers["x-request-id"]
    assert log[1]["source"] == "127.0.0.1"
    assert row["token"] not in json.dumps(log)


async def test_a_token_gives_no_more_than_it_has(stage: ControlStage) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    limited = await stage.ask("POST /v1/tokens", json={"name": "limited", "scopes": ["tokens:write"], "expires": soon})
    token = limited.json()["token"]
    for body, code in (
        ({"name": "a", "scopes": ["audit:read"]}, "scope-missing"),
        ({"name": "a", "scopes": ["tokens:write"]}, "outlives"),
        ({"name": "a", "scopes": ["no:such"]}, "unknown-scope"),
        ({"name": "limited", "scopes": ["tokens:write"], "expires": soon}, "name-taken"),
        ({"name": "a", "scopes": ["tokens:write"], "expires": "2020-01-01T00:00:00Z"}, "invalid"),
        ({"name": "a b", "scopes": ["tokens:write"]}, "invalid"),
        ({"name": "a", "scopes": ["tokens:write"], "wrong": 1}, "invalid"),
    ):
        answer = await stage.ask("POST /v1/tokens", token, json=body)
        assert answer.json()["code"] == code, answer.text


async def test_lists_come_in_pages_of_one_tenant(stage: ControlStage) -> None:
    for number in range(3):
        await stage.ask("POST /v1/tokens", json={"name": f"n{number}", "scopes": ["audit:read"]})
    names, cursor = [], ""
    for _ in range(3):
        page = (await stage.ask(f"GET /v1/tokens?limit=2&cursor={cursor}")).json()
        names += [one["name"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert names == [FULL, "n0", "n1", "n2"]
    cursor = (await stage.ask("GET /v1/tokens?limit=2")).json()["next"]
    for token, path in (
        (STRANGER, f"tokens?cursor={cursor}"),
        (FULL, f"audit?cursor={cursor}"),
        (FULL, "audit?cursor=x"),
    ):
        assert (await stage.ask(f"GET /v1/{path}", token)).json()["code"] == "bad-cursor"
    theirs = await stage.ask("GET /v1/audit", STRANGER)
    assert theirs.json() == {"items": [], "next": None}


async def test_the_audit_log_is_filtered_and_exported_and_only_grows(stage: ControlStage) -> None:
    for number in range(3):
        await stage.ask("POST /v1/tokens", json={"name": f"n{number}", "scopes": ["audit:read"]})
    first, second, third = reversed((await stage.ask("GET /v1/audit")).json()["items"])
    one = await stage.ask(f"GET /v1/audit?object={second['object']}&action=token.create")
    assert one.json()["items"] == [second]
    late = await stage.ask("GET /v1/audit", params={"since": second["at"], "limit": 1})
    assert (late.json()["items"], bool(late.json()["next"])) == ([third], True)
    lines = (await stage.ask("GET /v1/audit:export")).text.splitlines()
    assert [json.loads(line) for line in lines] == [third, second, first]
    columns = "id, tenant, at, 'nobody', source, action, object, before, after, request"
    copy = f"INSERT INTO audit SELECT {columns} FROM audit WHERE true"
    replace = (
        copy.replace("INSERT", "INSERT OR REPLACE")
        if stage.database.is_sqlite
        else f"{copy} ON CONFLICT (id) DO UPDATE SET actor = 'nobody'"
    )
    for statement in ("UPDATE audit SET actor = 'nobody'", "DELETE FROM audit", replace):
        with pytest.raises(DBAPIError, match="only grows"):
            async with stage.database.writing() as connection:
                await connection.execute(text(statement))


async def test_the_first_token_needs_the_code_and_there_is_one_first(empty: ControlStage) -> None:
    code = await empty.services.first_token.make(empty.database)
    wrong = await empty.ask("POST /v1/tokens:first", None, json={"code": "AAAA-AAAA-AAAA-AAAA"})
    assert (wrong.status_code, wrong.json()["code"]) == (403, "wrong-code")
    made = await empty.ask("POST /v1/tokens:first", None, json={"code": code.lower()})
    assert made.status_code == 201
    token = made.json()["token"]
    assert (await empty.ask("GET /v1/me", token)).json()["scopes"] == sorted(SCOPES)
    again = await empty.ask("POST /v1/tokens:first", None, json={"code": code})
    assert again.status_code == 403
    assert await empty.services.first_token.make(empty.database) == ""
    assert [one["actor"] for one in (await empty.ask("GET /v1/audit", token)).json()["items"]] == ["code"]


async def test_nobody_without_a_code_gets_a_body_read_that_costs_much(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.roles.control.first_token.WRONG_TOKENS", Rate(0.001, 3))
    many = b'{"code": "x"' + b"".join(b',"u%d":0' % number for number in range(80_000)) + b"}"
    async with empty_control(database, await memory_store(), tmp_path) as empty:

        async def refusal(body: bytes) -> tuple[int, str]:
            answer = await empty.ask("POST /v1/tokens:first", None, content=body, headers=JSON)
            return answer.status_code, answer.json()["code"]

        assert await refusal(many) == (403, "wrong-code"), "there is no code"
        code = await empty.services.first_token.make(empty.database)
        bodies = (many[:5_000], b"{", b'{"code": 1}', b"{}", many)
        first, *others = [await refusal(body) for body in bodies]
        assert first == (413, "too-large")
        assert others == [(422, "invalid")] * 2 + [(429, "too-many-requests")] * 2, "a malformed request is a try"
        assert empty.services.first_token.matches(code)


async def test_an_operator_of_the_file_works_with_his_scopes(stage: ControlStage) -> None:
    operators = OperatorTokens(stage.folder / "operator-tokens")
    token = operators.add("boss", frozenset({"audit:read", "devices:input"}))
    me = (await stage.ask("GET /v1/me", token)).json()
    assert (me["kind"], me["name"], me["scopes"]) == ("operator", "boss", ["audit:read"])
