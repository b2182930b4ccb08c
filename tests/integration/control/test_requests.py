"""What surrounds every route: ids, errors, bounds, rates, repeated requests, the description of the API."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, text, update

from fleet.adapters.net.own_address import own_address
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.processes import Processes, ProcessRecord
from fleet.adapters.sql import database as module
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.idempotency_rows import IdempotencyRows
from fleet.adapters.sql.schema import IDEMPOTENCY
from fleet.core.permissions import SYSTEM_READ
from fleet.roles.control.leader.tidying import Tidying
from fleet.roles.control.routing import LARGEST_BODY, MOST_VALUES
from tests.support.control_server import FULL, STRANGER, ControlStage, control_stage, empty_control
from tests.support.memory_store import memory_store


def sent(body: bytes) -> dict[str, Any]:
    return {"content": body, "headers": {"Content-Type": "application/json"}}


TLS = "https://fleet.example:8443"
NEW = {"name": "n", "scopes": ["audit:read"]}


async def test_a_sane_request_id_is_kept_and_another_is_replaced(stage: ControlStage) -> None:
    for sent, kept in (("abc-1", True), ("x" * 65, False), ("a b", False), ("ä", False)):
        answer = await stage.ask("GET /v1/none", headers={"X-Request-Id": sent.encode()})
        assert (answer.headers["x-request-id"] == sent) is kept
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_every_error_is_a_problem(stage: ControlStage) -> None:
    long = b'{"name": "' + b"a" * LARGEST_BODY + b'"}'
    many = b'{"name": "n"' + b"".join(b',"u%d":0' % number for number in range(MOST_VALUES)) + b"}"
    most = b'{"name": "n"' + b"".join(b',"u%d":0' % number for number in range(MOST_VALUES - 1)) + b"}"
    for verb, more, status, code in (
        ("GET /nothing", {}, 404, "not-found"),
        ("GET /v1/tokens/999", {}, 404, "not-found"),
        ("GET /v1/tokens/0", {}, 422, "invalid"),
        ("GET /v1/tokens/99999999999999999999999", {}, 422, "invalid"),
        ("PATCH /v1/me", {}, 405, "method-not-allowed"),
        ("POST /v1/tokens", {"content": b"{}"}, 422, "invalid"),
        ("POST /v1/tokens", sent(b"{"), 422, "invalid"),
        ("POST /v1/tokens", sent(b"[" * 2_500), 400, "bad-request"),
        ("POST /v1/tokens", sent(b"[" * 100_000), 413, "too-large"),
        ("POST /v1/tokens", sent(many), 413, "too-large"),
        ("POST /v1/tokens", sent(most), 422, "invalid"),
        ("POST /v1/tokens", sent(b'"\xff"'), 400, "bad-request"),
        ("POST /v1/tokens", sent(b'{"name": "\\ud800", "scopes": ["audit:read"]}'), 422, "invalid"),
        ("POST /v1/tokens", sent(b'{"\\ud800": 1}'), 422, "invalid"),
        ("POST /v1/tokens", sent(long), 413, "too-large"),
        ("GET /v1/tokens?limit=0", {}, 422, "invalid"),
        ("GET /v1/tokens?cursor=%C3%A4", {}, 400, "bad-cursor"),
        ("GET /v1/audit?actor=%00", {}, 400, "invalid"),
        ("GET /v1/tokens/%00", {}, 400, "invalid"),
        ("POST /v1/tokens", {"json": {**NEW, "name": "\0"}}, 400, "invalid"),
        ("POST /v1/tokens", {"json": {**NEW, "name": "\\\0"}}, 400, "invalid"),
        ("POST /v1/tokens", {"json": {**NEW, "name": "\\u0000"}}, 422, "invalid"),
        ("POST /v1/tokens", sent(b'{"name": "\0"}'), 400, "invalid"),
        ("GET /v1/audit?since=soon", {}, 422, "invalid"),
        ("DELETE /v1/tokens/1", {"headers": {"Idempotency-Key": ""}}, 400, "bad-key"),
        ("PATCH /v1/groups/1", {"json": {}, "headers": {"If-Match": ""}}, 400, "bad-etag"),
        ("PATCH /v1/groups/1", {"json": {}, "headers": {"If-Match": '"1", "2"'}}, 400, "bad-etag"),
    ):
        answer = await stage.ask(verb, **more)
        assert (answer.status_code, answer.json().get("code")) == (status, code), f"{verb}: {answer.text[:300]}"
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "detail", "instance", "request_id"} <= answer.json().keys()


@pytest.mark.parametrize(("header", "code"), [("Idempotency-Key", "bad-key"), ("If-Match", "bad-etag")])
async def test_a_header_that_counts_is_sent_once(stage: ControlStage, header: str, code: str) -> None:
    headers = [("Authorization", f"Bearer {FULL}"), (header, '"1"'), (header, '"2"')]
    answer = await stage.client.patch("/v1/groups/1", headers=headers, json={})
    assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_a_fault_of_the_server_says_nothing_of_it(stage: ControlStage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> str:
        raise RuntimeError("a secret")

    monkeypatch.setattr("fleet.adapters.sql.token_rows.TokenRows.tenant_name", fail)
    answer = await stage.ask("GET /v1/me", headers={"X-Request-Id": "abc"})
    assert (answer.status_code, answer.json()["code"]) == (500, "failed")
    assert (answer.headers["x-request-id"], "secret" in answer.text) == ("abc", False)


async def test_a_token_has_a_rate_and_learns_of_it(database: Database, tmp_path: Path) -> None:
    async with control_stage(database, await memory_store(), tmp_path, rate_control="0.001/3") as stage:
        answers = [await stage.ask("GET /v1/me") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert [answer.headers["ratelimit"].split(";")[1] for answer in answers[:3]] == ["r=2", "r=1", "r=0"]
        assert int(answers[3].headers["retry-after"]) > 100
        assert (await stage.ask("GET /v1/me", STRANGER)).status_code == 200


async def test_a_repeated_request_gets_the_same_answer_and_changes_nothing(stage: ControlStage) -> None:
    key = {"Idempotency-Key": "k1"}
    first = await stage.ask("POST /v1/tokens", json=NEW, headers=key)
    again = await stage.ask("POST /v1/tokens", json=NEW, headers=key)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert again.json() == {**first.json(), "token": None}, "the secret is not kept"
    other = await stage.ask("POST /v1/tokens", json={**NEW, "name": "m"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key-mismatch")
    foreign = await stage.ask("POST /v1/tokens", STRANGER, json=NEW, headers=key)
    assert foreign.status_code == 201 and foreign.json()["id"] != first.json()["id"]
    assert len((await stage.ask("GET /v1/audit")).json()["items"]) == 1
    refused = await stage.ask("POST /v1/tokens", json=NEW, headers={"Idempotency-Key": "k2"})
    assert refused.json()["code"] == "name-taken"
    await stage.ask(f"DELETE /v1/tokens/{first.json()['id']}", headers={"Idempotency-Key": "k3"})
    retried = await stage.ask("POST /v1/tokens", json=NEW, headers={"Idempotency-Key": "k2"})
    assert retried.status_code == 201, "a request that changed nothing may be repeated"


async def test_of_equal_requests_at_once_one_has_its_effect(stage: ControlStage) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(stage.ask("POST /v1/tokens", json=NEW, headers={"Idempotency-Key": "k"}))
            for _ in range(8)
        ]
    answers = [one.result() for one in asked]
    assert {(answer.status_code, answer.json().get("code")) for answer in answers} <= {(201, None), (409, "key-in-use")}
    made = {answer.json()["id"] for answer in answers if answer.status_code == 201}
    assert len(made) == 1
    assert len((await stage.ask("GET /v1/audit")).json()["items"]) == 1


async def test_a_key_whose_process_died_is_free_later_but_not_what_it_began(stage: ControlStage) -> None:
    await stage.ask("POST /v1/tokens", json=NEW, headers={"Idempotency-Key": "k"})
    async with stage.database.writing() as connection:
        row = (await connection.execute(select(IDEMPOTENCY))).one()
        await connection.execute(update(IDEMPOTENCY).values(status=0, expires=row.expires))
    in_use = await stage.ask("POST /v1/tokens", json=NEW, headers={"Idempotency-Key": "k"})
    assert in_use.json()["code"] == "key-in-use"
    async with stage.database.writing() as connection:
        await connection.execute(update(IDEMPOTENCY).values(status=1))
    begun = await stage.ask("POST /v1/tokens", json=NEW, headers={"Idempotency-Key": "k"})
    assert begun.json()["code"] == "outcome-unknown"
    async with stage.database.writing() as connection:
        await connection.execute(update(IDEMPOTENCY).values(status=0, expires=1))
    free = await stage.ask("POST /v1/tokens", json={**NEW, "name": "m"}, headers={"Idempotency-Key": "k"})
    assert free.status_code == 201


async def test_kept_answers_are_bounded_and_expire(stage: ControlStage) -> None:
    for number in range(4):
        body = {**NEW, "name": f"n{number}"}
        await stage.ask("POST /v1/tokens", json=body, headers={"Idempotency-Key": f"k{number}"})

    async def rows() -> int:
        async with stage.database.reading() as connection:
            return len((await connection.execute(select(IDEMPOTENCY.c.key))).all())

    await IdempotencyRows(stage.database).tidy(0, most=2)
    assert await rows() <= 2
    day = 86_400_000
    await Tidying(stage.database, audit_days=0).tidy(day * 100_000)
    assert await rows() == 0


async def test_the_description_fits_the_app_and_needs_no_token(stage: ControlStage) -> None:
    answer = await stage.ask("GET /v1/openapi.json", None)
    found = answer.json()
    assert found["openapi"].startswith("3.1")
    assert found["paths"]["/v1/tokens"]["post"]["x-scope"] == "tokens:write"
    assert found["paths"]["/v1/tokens"]["post"]["security"] == [{"token": []}, {"session": []}]
    assert "HTTPValidationError" not in json.dumps(found)
    cached = await stage.ask("GET /v1/openapi.json", None, headers={"If-None-Match": answer.headers["etag"]})
    assert cached.status_code == 304
    page = await stage.ask("GET /v1/docs", None)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in ("docs.css", "docs.js"):
        assert name in page.text
        assert (await stage.ask(f"GET /v1/{name}", None)).status_code == 200


async def test_the_state_of_the_site_is_shown(stage: ControlStage) -> None:
    found = (await stage.ask("GET /v1/system")).json()
    assert found["database"]["kind"] == ("sqlite" if stage.database.is_sqlite else "postgresql")
    assert found["shards_without_owner"] == list(range(found["shards"]))
    settings = stage.services.settings
    assert found["site"] == {"ota_url": f"http://{own_address()}:8000/xiaozhi/ota/", "timezone": settings.timezone}
    assert (await stage.ask("GET /healthz", None)).json() == {"status": "alive"}
    assert (await stage.ask("GET /readyz", None)).json() == {"status": "ready"}


async def test_processes_brokers_and_what_waits_are_shown(stage: ControlStage) -> None:
    store, broker = stage.services.store, "broker.example:1883"
    for number, (role, connected) in enumerate((("worker", True), ("worker", False), ("edge", True), ("api", False))):
        place = "" if role == "api" else broker
        faults = "" if connected or role == "api" else "broker"
        await Processes(store).announce(ProcessRecord(f"p{number}", role, "9.9.9", 1_000, faults, place, connected))
    for shard, messages in ((3, 1), (5, 2)):
        for _ in range(messages):
            await store.client.xadd(store.keys.inbox(shard), {"m": "{}"})
    await store.client.xadd(store.keys.events(7), {"k": "device.online"})
    await Edges(store).announce(EdgeRecord("e1", "203.0.113.7", 8884, 3, voices=("zf_own", "zm_yunxi")))
    found = (await stage.ask("GET /v1/system")).json()
    assert [(one["id"], one["role"], one["since"]) for one in found["processes"]] == [
        *(("p3", "api", "1970-01-01T00:00:01.000Z"), ("p2", "edge", "1970-01-01T00:00:01.000Z")),
        *(("p0", "worker", "1970-01-01T00:00:01.000Z"), ("p1", "worker", "1970-01-01T00:00:01.000Z")),
    ]
    assert found["processes"][3]["faults"] == "broker"
    assert found["brokers"] == [{"address": broker, "connected": 2, "away": 1}]
    (edge,) = found["edges"]
    assert (edge["id"], edge["sessions"], edge["voices"]) == ("e1", 3, ["zf_own", "zm_yunxi"])
    assert (found["messages_waiting"], found["events_waiting"]) == (3, 1)
    assert found["lags"] == [
        {"shard": 5, "messages": 2, "events": 0},
        {"shard": 3, "messages": 1, "events": 0},
        {"shard": 7, "messages": 0, "events": 1},
    ]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_the_address_for_devices_is_that_of_the_settings(database: Database, tmp_path: Path) -> None:
    for name in ("cert", "key"):
        (tmp_path / name).write_text("", encoding="utf-8")
    for named, address in (
        ({"http_public": "https://fleet.example/x"}, "https://fleet.example/x"),
        ({"public_host": "fleet.example", "http_port": 8001}, "http://fleet.example:8001"),
        ({"public_host": "fleet.example", "tls_cert": tmp_path / "cert", "tls_key": tmp_path / "key"}, TLS),
    ):
        store = await memory_store()
        async with empty_control(database, store, tmp_path, **named) as stage:
            token = await stage.add_token(f"flt_{address}", SYSTEM_READ)
            found = (await stage.ask("GET /v1/system", token)).json()
            assert found["site"]["ota_url"] == f"{address}/xiaozhi/ota/"
        await store.close()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_full_disk_is_said_and_logged(
    stage: ControlStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FAILED_SECONDS", 3_600.0)
    async with stage.database.writing() as connection:
        await connection.execute(text("PRAGMA max_page_count = 1"))
    for number in range(1_000):
        new = {"mac": f"02:00:00:00:{number // 256:02x}:{number % 256:02x}", "notes": "a" * 4_000}
        answer = await stage.ask("POST /v1/devices", json=new)
        if answer.status_code != 201:
            break
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert (await stage.ask("GET /readyz", None)).status_code == 503
    assert (await stage.ask("GET /healthz", None)).status_code == 200
    said = [one for one in caplog.records if one.message == "request not served"]
    assert said and "full" in vars(said[0])["reason"]
    async with stage.database.writing() as connection:
        await connection.execute(text("PRAGMA max_page_count = 1000000"))
    assert (await stage.ask("POST /v1/devices", json=new)).status_code == 201
    assert (await stage.ask("GET /readyz", None)).json() == {"status": "ready"}


async def test_garbage_of_every_kind_leaves_control_well(stage: ControlStage) -> None:
    for header in (b"Bearer", b"Bearer \xff\xfe", b"Basic abc", b"Bearer " + b"x" * 9_000):
        answer = await stage.client.get("/v1/me", headers={b"Authorization": header})
        assert answer.status_code in (401, 429)
    with suppress(httpx2.HTTPError):
        assert (await stage.client.get("/v1/me", headers={"X": "a" * 200_000})).status_code == 400
    assert (await stage.ask("GET /v1/me", FULL)).status_code == 200
