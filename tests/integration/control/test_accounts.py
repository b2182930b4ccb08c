"""Accounts: the first owner by a code, further ones, and who may change whom."""

import asyncio
from pathlib import Path

from sqlalchemy import insert

from fleet.adapters.sql.account_rows import AccountRows
from fleet.adapters.sql.account_schema import ACCOUNT
from fleet.adapters.sql.database import Database
from fleet.core.permissions import ACCOUNTS_WRITE, ROLES, SCOPES
from tests.integration.control.test_access import is_problem
from tests.support.console_browser import PASSWORD, add_account, console_browser
from tests.support.control_server import STRANGER, ControlStage, empty_control
from tests.support.memory_store import memory_store

NEW = {"name": "ling", "role": "operator", "password": PASSWORD}


async def test_an_account_is_made_changed_and_deleted(stage: ControlStage) -> None:
    made = await stage.ask("POST /v1/accounts", json=NEW)
    assert made.status_code == 201
    row = made.json()
    assert (row["name"], row["role"], row["disabled"], row["last_sign_in"]) == ("ling", "operator", False, None)
    path = made.headers["location"]
    async with console_browser(stage) as browser:
        for ending in (
            {"verb": f"PATCH {path}", "json": {"role": "viewer"}},
            {"verb": f"POST {path}:sign_out"},
            {"verb": f"POST {path}:password", "json": {"password": PASSWORD + "!"}},
        ):
            await browser.sign_in("ling")
            assert (await browser.ask("GET /v1/me")).status_code == 200
            assert (await stage.ask(**ending)).status_code in (200, 204)
            assert (await browser.ask("GET /v1/me")).status_code == 401, ending
        assert (await browser.sign_in("ling", PASSWORD + "!")).json()["role"] == "viewer"
        assert (await stage.ask(f"GET {path}")).json()["last_sign_in"] is not None
        assert (await stage.ask(f"PATCH {path}", json={"disabled": True})).json()["disabled"]
        assert (await browser.ask("GET /v1/me")).status_code == 401
        assert (await browser.sign_in("ling", PASSWORD + "!")).status_code == 403
        await stage.ask(f"PATCH {path}", json={"disabled": False})
        assert (await browser.sign_in("ling", PASSWORD + "!")).status_code == 201
        assert (await stage.ask(f"DELETE {path}")).status_code == 204
        assert (await browser.ask("GET /v1/me")).status_code == 401
    assert (await stage.ask(f"GET {path}")).status_code == 404
    log = (await stage.ask("GET /v1/audit?object=account/1&limit=200")).json()["items"]
    assert [one["action"] for one in log if not one["action"].startswith("session")] == [
        *("account.delete", "account.change", "account.change"),
        *("account.reset_password", "account.sign_out", "account.change", "account.create"),
    ]
    assert (await stage.ask("POST /v1/accounts", json=NEW)).json()["id"] == row["id"] + 1, "no number comes twice"


async def test_nobody_gives_or_takes_more_than_he_may(stage: ControlStage) -> None:
    owner = await add_account(stage, "boss", "owner")
    await add_account(stage, "chief", "owner")
    operator = await add_account(stage, "ling", "operator")
    token = await stage.add_token("flt_hr", ACCOUNTS_WRITE, *ROLES["viewer"])
    for verb, body in (
        ("POST /v1/accounts", {**NEW, "name": "new", "role": "owner"}),
        ("POST /v1/accounts", {**NEW, "name": "new", "role": "operator"}),
        (f"PATCH /v1/accounts/{operator.id}", {"role": "viewer"}),
        (f"POST /v1/accounts/{owner.id}:password", {"password": "another horse battery"}),
        (f"POST /v1/accounts/{owner.id}:sign_out", None),
        (f"DELETE /v1/accounts/{owner.id}", None),
    ):
        assert is_problem(await stage.ask(verb, token, json=body), 403, "scope-missing"), verb
    made = await stage.ask("POST /v1/accounts", token, json={**NEW, "name": "new", "role": "viewer"})
    assert made.status_code == 201
    changed = await stage.ask(f"PATCH /v1/accounts/{made.json()['id']}", token, json={"role": "owner"})
    assert is_problem(changed, 403, "scope-missing")


async def test_there_is_always_an_owner(stage: ControlStage) -> None:
    boss, chief = await add_account(stage, "boss", "owner"), await add_account(stage, "chief", "owner")
    await add_account(stage, "theirs", "owner", tenant=2)
    assert (await stage.ask(f"PATCH /v1/accounts/{chief.id}", json={"disabled": True})).status_code == 200
    for verb, body in (
        (f"DELETE /v1/accounts/{boss.id}", None),
        (f"PATCH /v1/accounts/{boss.id}", {"role": "operator"}),
        (f"PATCH /v1/accounts/{boss.id}", {"disabled": True}),
    ):
        assert is_problem(await stage.ask(verb, json=body), 409, "last-owner"), verb
    assert (await stage.ask(f"DELETE /v1/accounts/{chief.id}")).status_code == 204, "it could not sign in anyway"
    assert (await stage.ask(f"PATCH /v1/accounts/{boss.id}", json={"role": "owner"})).status_code == 200


async def test_requests_that_are_not_valid_are_refused(stage: ControlStage) -> None:
    await stage.ask("POST /v1/accounts", json=NEW)
    for body, status, code in (
        (NEW, 409, "name-taken"),
        ({**NEW, "name": "LinG"}, 409, "name-taken"),
        ({**NEW, "password": "eleven char"}, 422, "invalid"),
        ({**NEW, "password": "x" * 201}, 422, "invalid"),
        ({**NEW, "role": "king"}, 422, "invalid"),
        ({**NEW, "name": "a b"}, 422, "invalid"),
    ):
        assert is_problem(await stage.ask("POST /v1/accounts", json=body), status, code), body
    assert (await stage.ask("POST /v1/accounts", STRANGER, json=NEW)).status_code == 201, "names are of a tenant"


async def test_a_name_in_another_case_is_the_same_account(stage: ControlStage) -> None:
    made = (await stage.ask("POST /v1/accounts", json=NEW)).json()
    async with console_browser(stage) as browser:
        assert (await browser.sign_in("LING")).json()["name"] == "ling"
    # An earlier version made accounts that differ by case only.
    password = await stage.services.passwords.hash("another horse battery")
    old = {"tenant": 1, "name": "Ling", "role": "viewer", "password": password, "created": 1}
    async with stage.database.writing() as connection:
        await connection.execute(insert(ACCOUNT).values(id=made["id"] + 1, **old))
    rows = AccountRows(stage.database)
    found = {name: await rows.named("default", name) for name in ("ling", "Ling", "LING")}
    numbers = {name: one and one[0].id - made["id"] for name, one in found.items()}
    assert numbers == {"ling": 0, "Ling": 1, "LING": 0}


async def test_of_accounts_that_are_made_at_once_one_has_the_name(stage: ControlStage) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(stage.ask("POST /v1/accounts", json={**NEW, "name": name}))
            for name in ("ling", "Ling", "LING")
        ]
    assert sorted(one.result().status_code for one in asked) == [201, 409, 409]


async def test_a_key_of_a_request_with_a_password_keeps_no_fast_hash_of_it(stage: ControlStage) -> None:
    key = {"Idempotency-Key": "k1"}
    first = await stage.ask("POST /v1/accounts", json=NEW, headers=key)
    again = await stage.ask("POST /v1/accounts", json={**NEW, "password": "another horse battery"}, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["idempotency-replayed"] == "true" and again.json() == first.json()


async def test_lists_come_in_pages(stage: ControlStage) -> None:
    for number in range(3):
        await add_account(stage, f"n{number}", "viewer")
    page = (await stage.ask("GET /v1/accounts?limit=2")).json()
    rest = (await stage.ask(f"GET /v1/accounts?limit=2&cursor={page['next']}")).json()
    assert [one["name"] for one in (*page["items"], *rest["items"])] == ["n0", "n1", "n2"]
    assert rest["next"] is None
    assert (await stage.ask("GET /v1/accounts", STRANGER)).json()["items"] == []


async def test_the_code_of_the_console_makes_the_first_owner_once(database: Database, tmp_path: Path) -> None:
    async with empty_control(database, await memory_store(), tmp_path) as empty, console_browser(empty) as browser:
        nobody = {"owned": False, "accounts": False}
        assert (await browser.ask("GET /v1/accounts:first")).json() == {**nobody, "open": False}
        given = {"name": "ling", "password": PASSWORD}
        answer = await browser.ask("POST /v1/accounts:first", json={**given, "code": "AAAA-AAAA-AAAA-AAAA"})
        assert is_problem(answer, 403, "wrong-code")
        code = await empty.services.first_token.make(empty.database)
        assert (await browser.ask("GET /v1/accounts:first")).json() == {**nobody, "open": True}
        foreign = {"Origin": "https://evil.example"}
        answer = await browser.ask("POST /v1/accounts:first", json={**given, "code": code}, headers=foreign)
        assert is_problem(answer, 403, "foreign-page")
        answer = await browser.ask("POST /v1/accounts:first", json={**given, "code": code})
        assert (answer.status_code, answer.json()["role"]) == (201, "owner")
        assert (await browser.ask("GET /v1/me")).json()["scopes"] == sorted(SCOPES)
        owned = {"open": False, "owned": True, "accounts": True}
        assert (await browser.ask("GET /v1/accounts:first")).json() == owned
        for path, body in (("accounts:first", {**given, "name": "thief"}), ("tokens:first", {})):
            answer = await browser.ask(f"POST /v1/{path}", json={**body, "code": code})
            assert is_problem(answer, 403, "wrong-code"), path
        assert await empty.services.first_token.make(empty.database) == ""
        token = await browser.ask("POST /v1/tokens", json={"name": "shop", "scopes": ["audit:read"]})
        assert token.status_code == 201 and token.json()["expires"] is None, "it outlives the sign-in that made it"
        log = (await empty.ask("GET /v1/audit", token.json()["token"])).json()["items"]
        assert [(one["actor"], one["action"]) for one in log] == [
            ("account:ling", "token.create"),
            ("code", "account.create"),
        ]
