"""Signing in and out: what a cookie allows, from where, and how long."""

import asyncio
import re
import threading
from datetime import datetime
from typing import Any

import pytest

from fleet.adapters.redis.access.sign_ins import IDLE_SECONDS
from fleet.adapters.redis.client.store import Store
from fleet.core.permissions import OWNER, ROLES
from fleet.core.rates import Rate
from fleet.ground.errors import Unavailable
from fleet.ground.metrics import accounts
from fleet.roles.control.accounts import limits
from fleet.roles.control.accounts.access import LIFE_SECONDS
from fleet.roles.control.accounts.passwords import MOST_WAITING
from fleet.roles.control.routing import ANY_SCOPE, OPEN, ControlRoute
from tests.integration.control.test_access import example, is_problem, routes
from tests.support.console_browser import PASSWORD, ConsoleBrowser, add_account, console_browser
from tests.support.control_server import FULL, OTHER_TENANT, ControlStage

MAC = "02:00:00:00:00:01"
WRONG = "wrong horse battery"


async def _fill(verb: str, route: ControlRoute) -> tuple[str, dict[str, Any]]:
    filled = re.sub("{(.*?)}", lambda found: MAC if found[1] == "mac" else "999", verb)
    return filled + "?limit=1" * verb.endswith("/events"), example(route)


@pytest.fixture
def forgetting_slowly(stage: ControlStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries that count for longer than any test takes."""
    for name in ("OF_ADDRESS", "OF_BROWSER", "OF_PAIR", "OF_ACCOUNT"):
        monkeypatch.setattr(limits, name, Rate(1e-6, getattr(limits, name).burst))
    monkeypatch.setattr(stage.services.passwords, "_limits", limits.SignInLimits())


async def _refuse_foreign_pages(browser: ConsoleBrowser, filled: str, body: dict[str, Any]) -> None:
    foreign = await browser.ask(filled, **body, headers={"Sec-Fetch-Site": "cross-site"})
    assert is_problem(foreign, 403, "foreign-page"), filled
    if filled.startswith("GET "):
        assert (await browser.ask(filled, headers={"Origin": "https://evil.example"})).status_code == 403
    else:
        kept = {"Cookie": f"fleet-{browser.client.base_url.port}={browser.cookies['fleet']}"}
        unnamed = await browser.client.request(*filled.split(" "), headers=kept, **body)
        assert is_problem(unnamed, 403, "foreign-page"), f"{filled} without an origin"


async def test_a_sign_in_may_what_its_role_may_on_every_route(stage: ControlStage) -> None:
    for role, scopes in ROLES.items():
        await add_account(stage, role, role)
        async with console_browser(stage) as browser:
            assert (await browser.sign_in(role)).status_code == 201
            secret, password = browser.cookies["fleet"], PASSWORD
            for verb, route in routes(stage):
                if route.terms.scope == OPEN:
                    continue
                filled, body = await _fill(verb, route)
                # Pages are the same for all roles: whoever may do everything may not from elsewhere.
                if role == OWNER:
                    await _refuse_foreign_pages(browser, filled, body)
                answer = await browser.ask(filled, **body)
                code = answer.json()["code"] if answer.status_code >= 400 else ""
                assert (code == "scope-missing") == (route.terms.scope not in (ANY_SCOPE, *scopes)), f"{verb} as {role}"
                assert answer.status_code not in (401, 500), f"{verb} as {role}"
                if browser.cookies.get("fleet") != secret:
                    assert "/session" in verb
                    password = example(route)["json"]["new"] if verb.endswith(":password") else password
                    assert (await browser.sign_in(role, password)).status_code == 201
                    secret = browser.cookies["fleet"]


async def test_the_cookie_is_for_this_host_alone_and_no_script_reads_it(stage: ControlStage) -> None:
    account = await add_account(stage, "ling", "operator")
    async with console_browser(stage) as browser:
        answer = await browser.sign_in("ling")
        for line in answer.headers.get_list("set-cookie"):
            assert {"HttpOnly", "Path=/", "SameSite=strict"} <= {part.strip() for part in line.split(";")}
            assert "Secure" not in line and "Domain" not in line
        assert answer.headers["cache-control"] == "no-store"
        shown = answer.json()
        assert (shown["account"], shown["name"], shown["role"], shown["tenant"]) == (
            account.id,
            "ling",
            "operator",
            "default",
        )
        assert (await browser.ask("GET /v1/session")).json() == shown
        me = (await browser.ask("GET /v1/me")).json()
        assert (me["kind"], me["name"], me["scopes"]) == ("account", "ling", sorted(ROLES["operator"]))
        over_https = {"X-Forwarded-Proto": "https", "Origin": browser.page["Origin"].replace("http", "https")}
        secure = (await browser.sign_in("ling", headers=over_https)).headers.get_list("set-cookie")
        assert len(secure) == 2
        for line in secure:
            assert line.startswith("__Host-fleet") and "Secure" in line and "Domain" not in line
        log = (await stage.ask("GET /v1/audit?action=session.begin")).json()["items"]
        assert {(one["actor"], one["object"], one["source"]) for one in log} == {
            ("account:ling", f"account/{account.id}", "127.0.0.1")
        }


async def test_a_password_travels_only_where_nobody_reads_it(stage: ControlStage) -> None:
    await add_account(stage, "ling", "owner")
    port = stage.client.base_url.port
    far = {"X-Forwarded-For": "192.0.2.7"}
    async with console_browser(stage) as browser:
        await browser.sign_in("ling")
        cookie = {"Cookie": f"fleet-{port}={browser.cookies['fleet']}"}
        for headers in (far, {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}", **cookie}):
            assert is_problem(await browser.sign_in("ling", headers=headers), 403, "https-needed")
            assert (await browser.ask("GET /v1/me", headers={**headers, **cookie})).status_code == 403
        https = {**far, "X-Forwarded-Proto": "https", "Origin": browser.page["Origin"].replace("http", "https")}
        assert (await browser.sign_in("ling", headers=https)).status_code == 201


async def test_a_foreign_page_signs_nobody_in(stage: ControlStage) -> None:
    await add_account(stage, "ling", "owner")
    async with console_browser(stage) as browser:
        for page in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{stage.client.base_url.port + 1}", "Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "none"},
        ):
            assert is_problem(await browser.sign_in("ling", headers=page), 403, "foreign-page"), page
        assert not browser.cookies
        # A program names no page.
        body = {"name": "ling", "password": PASSWORD}
        assert (await browser.client.post("/v1/session", json=body)).status_code == 201


async def test_nobody_chooses_the_secret_of_a_sign_in(stage: ControlStage) -> None:
    await add_account(stage, "ling", "owner")
    port = stage.client.base_url.port
    async with console_browser(stage) as browser, console_browser(stage) as other:
        chosen = "x" * 43
        await browser.sign_in("ling", headers={"Cookie": f"fleet-{port}={chosen}"})
        first = browser.cookies["fleet"]
        assert first != chosen and len(first) == 43
        await browser.sign_in("ling")
        assert browser.cookies["fleet"] != first, "each sign-in has a secret of its own"
        for secret in (chosen, first):
            answer = await other.ask("GET /v1/me", headers={"Cookie": f"fleet-{port}={secret}"})
            assert answer.status_code == 401
        secret = browser.cookies["fleet"]
        twice = {"Cookie": f"fleet-{port}={secret}; fleet-{port}={chosen}"}
        assert (await other.ask("GET /v1/me", headers=twice)).status_code == 401, "somebody added a cookie"
        tokened = {"Cookie": f"fleet-{port}={secret}", "Authorization": "Bearer flt_wrong"}
        assert (await other.ask("GET /v1/me", headers=tokened)).status_code == 401, "a wrong token is not ignored"


async def test_a_stolen_cookie_ends_with_the_sign_in_even_if_redis_forgets_that(stage: ControlStage) -> None:
    await add_account(stage, "ling", "operator")
    port, redis = stage.client.base_url.port, stage.services.store.client
    async with console_browser(stage) as browser, console_browser(stage) as thief:
        for end in ("DELETE /v1/session", "POST /v1/session:end_all"):
            await browser.sign_in("ling")
            stolen = {"Cookie": f"fleet-{port}={browser.cookies['fleet']}"}
            [key] = await stage.services.store.scan("sign_in:*")
            value = await redis.get(key)
            assert browser.cookies["fleet"] not in key + value
            assert (await thief.ask("GET /v1/me", headers=stolen)).status_code == 200
            done = await browser.ask(end)
            assert done.status_code == 204
            assert "fleet" not in browser.cookies
            assert (await thief.ask("GET /v1/me", headers=stolen)).status_code == 401
            await redis.set(key, value)
            assert (await thief.ask("GET /v1/me", headers=stolen)).status_code == 401, (
                "an older copy of Redis came back"
            )
            await redis.delete(key)
    assert accounts.sign_ins.read()["ok",] >= 2
    actions = [one["action"] for one in (await stage.ask("GET /v1/audit")).json()["items"]]
    assert actions == ["session.end_all", "session.begin", "session.end", "session.begin"]


async def test_a_changed_password_ends_all_other_sign_ins(stage: ControlStage) -> None:
    await add_account(stage, "ling", "viewer")
    async with console_browser(stage) as browser, console_browser(stage) as other:
        await browser.sign_in("ling")
        await other.sign_in("ling")
        wrong = await browser.ask("POST /v1/session:password", json={"password": WRONG, "new": "another horse battery"})
        assert is_problem(wrong, 403, "wrong-password")
        short = await browser.ask("POST /v1/session:password", json={"password": PASSWORD, "new": "short"})
        assert is_problem(short, 422, "invalid") and "short" not in short.text.replace("at least", "")
        done = await browser.ask(
            "POST /v1/session:password", json={"password": PASSWORD, "new": "another horse battery"}
        )
        assert done.status_code == 200
        assert (await browser.ask("GET /v1/me")).status_code == 200, "this browser stays signed in"
        assert (await other.ask("GET /v1/me")).status_code == 401
        assert (await other.sign_in("ling")).status_code == 403
        assert (await other.sign_in("ling", "another horse battery")).status_code == 201


async def test_the_password_is_not_found_out_with_a_stolen_cookie(stage: ControlStage, forgetting_slowly: None) -> None:
    await add_account(stage, "ling", "viewer")
    async with console_browser(stage) as thief:
        await thief.sign_in("ling")
        body = {"password": WRONG, "new": "another horse battery"}
        codes = [(await thief.ask("POST /v1/session:password", json=body)).json()["code"] for _ in range(7)]
        assert codes == ["wrong-password"] * 5 + ["too-many-requests"] * 2


async def test_a_sign_in_ends_when_nobody_uses_it_and_after_a_week(
    stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_account(stage, "ling", "viewer")
    store = stage.services.store
    async with console_browser(stage) as browser:
        shown = (await browser.sign_in("ling")).json()
        assert shown["idle_seconds"] == IDLE_SECONDS
        life = datetime.fromisoformat(shown["expires"]) - datetime.fromisoformat(shown["began"])
        assert life.total_seconds() == LIFE_SECONDS
        [key] = await store.scan("sign_in:*")
        assert 0 < await store.client.ttl(key) <= IDLE_SECONDS
        await store.client.expire(key, 240)
        stage.services.accounts.forget(account=shown["account"])
        assert (await browser.ask("GET /v1/me")).status_code == 200
        assert await store.client.ttl(key) > 240, "a use prolongs it"
        late = int(datetime.fromisoformat(shown["expires"]).timestamp() * 1000) + 1
        monkeypatch.setattr("fleet.roles.control.accounts.access.milliseconds", lambda: late)
        assert (await browser.ask("GET /v1/me")).status_code == 401
        monkeypatch.undo()
        await store.client.delete(key)
        stage.services.accounts.forget(account=shown["account"])
        assert (await browser.ask("GET /v1/me")).status_code == 401


async def test_while_redis_is_away_a_sign_in_is_not_taken_for_ended(
    stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = await add_account(stage, "ling", "viewer")

    async def away(self: Store, command: Any) -> Any:
        command.close()
        raise Unavailable("Redis: no answer in time")

    async with console_browser(stage) as browser:
        await browser.sign_in("ling")
        monkeypatch.setattr(Store, "ask", away)
        stage.services.accounts.forget(account=account.id)
        assert is_problem(await browser.ask("GET /v1/me"), 503, "unavailable")
        assert is_problem(await browser.sign_in("ling"), 503, "unavailable")
        assert (await stage.ask("GET /v1/me", FULL)).status_code == 200, "tokens need no Redis"
        assert (await browser.ask("DELETE /v1/session")).status_code in (401, 503)
        monkeypatch.undo()
        assert (await browser.ask("GET /v1/me")).status_code == 200


async def test_words_do_not_say_which_accounts_exist(stage: ControlStage) -> None:
    await add_account(stage, "ling", "owner")
    await add_account(stage, "gone", "viewer")
    await add_account(stage, "theirs", "viewer", tenant=OTHER_TENANT)
    gone = (await stage.ask("GET /v1/accounts")).json()["items"][1]
    await stage.ask(f"PATCH /v1/accounts/{gone['id']}", json={"disabled": True})
    answers = set()
    async with console_browser(stage) as browser:
        for name, password in (("ling", WRONG), ("nobody", WRONG), ("gone", PASSWORD), ("theirs", PASSWORD), ("", "")):
            answer = await browser.sign_in(name, password)
            told = {key: value for key, value in answer.json().items() if key != "request_id"}
            names = tuple(sorted(set(answer.headers) - {"date"}))
            answers.add((answer.status_code, str(told), names))
        assert len(answers) == 1, answers
        theirs = {"name": "theirs", "password": PASSWORD, "tenant": "other"}
        assert (await browser.ask("POST /v1/session", json=theirs)).json()["tenant"] == "other"


async def test_wrong_passwords_are_limited_and_lock_nobody_out_who_signed_in_before(
    stage: ControlStage, forgetting_slowly: None
) -> None:
    await add_account(stage, "ling", "owner")
    async with console_browser(stage) as owner, console_browser(stage) as stranger:
        https = {"X-Forwarded-Proto": "https", "Origin": owner.page["Origin"].replace("http", "https")}

        async def tries(name: str, address: str, many: int) -> list[str]:
            headers = {**https, "X-Forwarded-For": address}
            return [(await stranger.sign_in(name, WRONG, headers=headers)).json()["code"] for _ in range(many)]

        assert (await owner.sign_in("ling", headers={**https, "X-Forwarded-For": "198.51.100.1"})).status_code == 201
        known = {"Cookie": f"__Host-fleet-known-{owner.client.base_url.port}={owner.cookies['__Host-fleet-known']}"}
        for name in ("ling", "nobody"):
            assert await tries(name, "192.0.2.1", 7) == ["wrong-password"] * 5 + ["too-many-requests"] * 2
        assert await tries("LING", "192.0.2.1", 1) == ["too-many-requests"], "it is the same account"
        for number in range(2, 20):
            await tries("ling", f"192.0.2.{number}", 3)
        assert await tries("ling", "192.0.2.99", 1) == ["too-many-requests"], "the account is locked for strangers"
        answer = await owner.sign_in("ling", headers={**https, "X-Forwarded-For": "203.0.113.9", **known})
        assert answer.status_code == 201, "whoever signed in before comes in from a new address"
        assert (await owner.sign_in("ling")).status_code == 201, "and so does whoever is on the machine"
        nobody = {**https, "X-Forwarded-For": "203.0.113.10", "Cookie": known["Cookie"][:-2] + "xx"}
        assert (await stranger.sign_in("ling", headers=nobody)).status_code == 429, "a forged cookie"
        assert len(set(await tries("another", "192.0.2.1", 40))) == 2, "one address, many names"


async def test_a_flood_of_strangers_keeps_nobody_out_who_signed_in_before(
    stage: ControlStage, forgetting_slowly: None
) -> None:
    await add_account(stage, "ling", "owner")
    free = threading.Event()
    async with console_browser(stage) as owner, console_browser(stage) as stranger:
        await owner.sign_in("ling")
        # A hash that takes long: those of strangers wait behind it.
        running = stage.services.passwords.passwords._threads[False].submit(free.wait)
        https = {"X-Forwarded-Proto": "https", "Origin": stranger.page["Origin"].replace("http", "https")}

        async def strange(number: int) -> int:
            headers = {**https, "X-Forwarded-For": f"192.0.2.{number}"}
            return (await stranger.sign_in(f"nobody{number}", WRONG, headers=headers)).status_code

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(strange(number)) for number in range(MOST_WAITING + 5)]
            try:
                # Those beyond the bound are refused at once, all others wait.
                while sum(task.done() for task in tasks) < 5:
                    await asyncio.sleep(0.01)
                assert (await owner.sign_in("ling")).status_code == 201
                assert not running.done()
            finally:
                free.set()
        assert sorted(task.result() for task in tasks) == [403] * MOST_WAITING + [503] * 5
        assert await strange(99) == 403, "there is room again"


async def test_passwords_are_in_no_log_row_or_answer(stage: ControlStage, caplog: pytest.LogCaptureFixture) -> None:
    secret = "a very secret passphrase"
    made = await stage.ask("POST /v1/accounts", json={"name": "ling", "role": "viewer", "password": secret})
    assert secret not in made.text
    await stage.ask("POST /v1/accounts", json={"name": "ling", "role": "viewer", "password": secret, "more": 1})
    async with console_browser(stage) as browser:
        await browser.sign_in("ling", secret)
        await browser.ask("POST /v1/session:password", json={"password": secret, "new": secret + "!", "x": secret})
    assert secret not in caplog.text + (await stage.ask("GET /v1/audit")).text


async def test_a_hundred_people_sign_in_at_once(stage: ControlStage) -> None:
    await add_account(stage, "ling", "owner")
    async with console_browser(stage) as browser:
        await browser.sign_in("ling")
        answers = await asyncio.wait_for(_many(browser), 240)
    assert set(answers) == {200}


async def _many(browser: ConsoleBrowser) -> list[int]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(browser.ask("GET /v1/me")) for _ in range(100)]
    return [task.result().status_code for task in tasks]
