"""Who may do what over the REST API: a sweep over all routes of the app."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2

from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.sessions.replies import Replies, Reply
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.operator_calls import OperatorCalls
from fleet.adapters.sql.account_rows import AccountRows
from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.alert_rows import AlertRows
from fleet.adapters.sql.alert_writes import alert_writes
from fleet.adapters.sql.conversation_rows import ConversationQuery, ConversationRows
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.adapters.sql.event_rows import EventRows, NewEvent
from fleet.adapters.sql.group_rows import GroupRows
from fleet.adapters.sql.image_rows import ImageRows, NewImage
from fleet.adapters.sql.job_rows import JobRows, NewJob
from fleet.adapters.sql.provider_rows import ProviderRows
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.alert_signs import Breach, Subject
from fleet.core.permissions import SCOPES
from fleet.roles.control.access import digest_of_token
from fleet.roles.control.routing import ANY_SCOPE, OPEN, ControlRoute
from fleet.wire.control.jobs import JobPolicy
from fleet.wire.operator_calls import OperatorCall
from fleet.wire.reminders import Reminder
from tests.support.control_server import FULL, OTHER_TENANT, STRANGER, ControlStage


async def _foreign_token(stage: ControlStage) -> str:
    row = await TokenRows(stage.database).add(OTHER_TENANT, "theirs", digest_of_token("flt_theirs"), SCOPES, 1)
    return str(row.id)


async def _foreign_device(stage: ControlStage) -> str:
    await DeviceRows(stage.database, OTHER_TENANT).add([NewDevice(THEIR_MAC)])
    return THEIR_MAC


async def _foreign_group(stage: ControlStage) -> str:
    return str((await GroupRows(stage.database, OTHER_TENANT).add("theirs", "", "")).id)


async def _foreign_tool(stage: ControlStage) -> str:
    return "self.get_device_status"


async def _foreign_call(stage: ControlStage) -> str:
    store = stage.services.store
    owner = await Leases(store, "w", 60).take(store.keys.shard(THEIR_MAC))
    assert owner is not None
    call = OperatorCall(device=THEIR_MAC, call="theirs", tool="self.reboot", arguments={})
    await OperatorCalls(store).put(call, 60, 60)
    await OperatorCalls(store).end(owner, call, "ok", "")
    await Replies(store).write(owner, THEIR_MAC, "theirs", Reply("answered", "theirs"))
    return call.call


THEIR_MAC = "02:00:00:00:00:77"


async def _foreign_conversation(stage: ControlStage) -> str:
    await _foreign_device(stage)
    rows = EventRows(stage.database, 1)
    await rows.begin()
    said = '{"turn":"t","session":"s","user":"Hi","answer":"Hello."}'
    await rows.store([NewEvent(0, "1-0", 1_700_000_000_000, "turn.answered", THEIR_MAC, said)], {})
    ((row,), _) = await ConversationRows(stage.database, OTHER_TENANT).page(ConversationQuery(), None, 1)
    return str(row.id)


async def _first(_: ControlStage) -> str:
    """Return the number of the turn of a foreign conversation."""
    return "1"


async def _foreign_agent(stage: ControlStage) -> str:
    return str((await AgentRows(stage.database, OTHER_TENANT).add("theirs", "", {}, 1)).id)


async def _foreign_provider(stage: ControlStage) -> str:
    fields = {"name": "theirs", "kind": "chat", "adapter": "openai", "base_url": "http://x.example/v1", "voices": []}
    return str((await ProviderRows(stage.database, OTHER_TENANT).add(**fields)).id)


async def _foreign_job(stage: ControlStage) -> str:
    fields = {"name": "theirs", "kind": "tool", "query": "", "continuous": False, "created_by": "token:theirs"}
    body = {"tool": "self.get_device_status", "arguments": {}, "collect": "status"}
    job = NewJob(**fields, body=body, policy=JobPolicy().model_dump(), created=1, expires=2**45)
    return str((await JobRows(stage.database, OTHER_TENANT).add(job)).id)


async def _foreign_announcement(stage: ControlStage) -> str:
    body = {"text": "Theirs.", "language": "", "ways": ["alert"]}
    fields = {"name": "theirs", "kind": "announce", "query": "", "continuous": False, "created_by": "token:theirs"}
    job = NewJob(**fields, body=body, policy=JobPolicy().model_dump(), created=1, expires=2**45)
    return str((await JobRows(stage.database, OTHER_TENANT).add(job)).id)


async def _foreign_command(stage: ControlStage) -> str:
    await _foreign_device(stage)
    fields = {"name": "command", "kind": "tool", "query": f"mac={THEIR_MAC}", "continuous": False}
    body = {"tool": "self.get_device_status", "arguments": {}, "collect": "status"}
    job = NewJob(**fields, body=body, policy=JobPolicy().model_dump(), created=1, created_by="token:t", expires=2**45)
    return str((await JobRows(stage.database, OTHER_TENANT).add(job)).id)


async def _foreign_alert(stage: ControlStage) -> str:
    await EventRows(stage.database, 1).begin()
    async with alert_writes(stage.database, 1, 1) as writes:
        await writes.begin([Breach(Subject(OTHER_TENANT, "tools", name="self.x"), "theirs")])
    return str((await AlertRows(stage.database, OTHER_TENANT).page(2**62, 1, only_open=True))[0].id)


async def _foreign_account(stage: ControlStage) -> str:
    return str((await AccountRows(stage.database).add(OTHER_TENANT, "theirs", "owner", "", 1)).id)


async def _foreign_image(stage: ControlStage) -> str:
    image = NewImage("firmware", "board", "2.6.0", "ab" * 32, 9, 1, "token:theirs")
    return str((await ImageRows(stage.database, OTHER_TENANT).add(image)).id)


async def _foreign_reminder(stage: ControlStage) -> str:
    store = stage.services.store
    owner = await Leases(store, "w", 60).take(store.keys.shard(THEIR_MAC))
    assert owner is not None
    await Reminders(store).add(owner, THEIR_MAC, Reminder(id="r1", text="theirs", due=2**42))
    return "r1"


FOREIGN: dict[str, Callable[[ControlStage], Awaitable[str]]] = {
    "token": _foreign_token,
    "mac": _foreign_device,
    "group": _foreign_group,
    "name": _foreign_tool,
    "call": _foreign_call,
    "turn": _foreign_call,
    "conversation": _foreign_conversation,
    "number": _first,
    "agent": _foreign_agent,
    "provider": _foreign_provider,
    "job": _foreign_job,
    "command": _foreign_command,
    "announcement": _foreign_announcement,
    "alert": _foreign_alert,
    "account": _foreign_account,
    "image": _foreign_image,
    "reminder": _foreign_reminder,
}
"""Of each path parameter: makes an object of another tenant, and returns its id."""


FILES = ("/", "/console", "/console/{path:path}", "/healthz", "/readyz")
"""Routes that nobody needs a token for, and that know nothing of tenants."""


def routes(stage: ControlStage) -> Iterator[tuple[str, ControlRoute]]:
    for route in stage.app.routes:
        path = getattr(route, "path", "")
        if path in FILES:
            continue
        assert isinstance(route, ControlRoute), f"{path} was not added by Routes, so it has no scope"
        assert route.terms.scope in (*SCOPES, ANY_SCOPE, OPEN)
        for method in route.methods:
            yield f"{method} {path}", route


def example(route: ControlRoute) -> dict[str, Any]:
    """Return what a valid request of a route sends."""
    if route.body_field is None:
        return {}
    model = route.body_field.field_info.annotation
    examples = (model.model_config.get("json_schema_extra") or {}).get("examples")
    assert examples, f"{model.__name__} has no example"
    return {"json": examples[0]}


def is_problem(answer: httpx2.Response, status: int, code: str) -> bool:
    found = answer.json()
    return bool(
        (answer.status_code, found.get("status"), found.get("code")) == (status, status, code)
        and answer.headers["content-type"] == "application/problem+json"
        and answer.headers["x-request-id"] == found["request_id"]
    )


async def test_every_route_refuses_who_may_not_use_it(stage: ControlStage) -> None:
    for scope in SCOPES:
        await stage.add_token(f"without-{scope.replace(':', '-')}", *(set(SCOPES) - {scope}))
    for verb, route in routes(stage):
        scope = route.terms.scope
        if scope == OPEN:
            continue
        assert is_problem(await stage.ask(verb, None), 401, "token-needed"), verb
        if scope != ANY_SCOPE:
            answer = await stage.ask(verb, f"without-{scope.replace(':', '-')}")
            assert is_problem(answer, 403, "scope-missing"), verb
    assert is_problem(await stage.ask("GET /v1/me", "flt_wrong"), 401, "token-needed")


async def test_what_belongs_to_another_tenant_does_not_exist(stage: ControlStage) -> None:
    ids: dict[str, str] = {}
    for verb, route in routes(stage):
        names = re.findall(r"{(\w+)}", verb)
        for name in names:
            ids[name] = ids.get(name) or await FOREIGN[name](stage)
        if names:
            answer = await stage.ask(verb.format(**ids), FULL, **example(route))
            assert is_problem(answer, 404, "not-found"), f"{verb}: {answer.status_code} {answer.text}"
    for name in ids:
        reads = [verb for verb, _ in routes(stage) if verb.startswith("GET ") and verb.endswith(f"{{{name}}}")]
        for verb in reads:
            assert (await stage.ask(verb.format(**ids), STRANGER)).status_code == 200, f"{verb} changed it"


async def test_a_token_says_whose_it_is(stage: ControlStage) -> None:
    answer = (await stage.ask("GET /v1/me", FULL)).json()
    assert answer == {"kind": "token", "name": FULL, "tenant": "default", "scopes": sorted(SCOPES), "expires": None}
