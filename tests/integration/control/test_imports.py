"""Files of devices hold up nobody else, and an import ends if they are wrong."""

import asyncio
import json

import httpx2
import pytest
from starlette.types import Message

from fleet.roles.control.routes.device_files import MOST_ERRORS
from fleet.wire.control.device_file import Format
from tests.support.control_server import FULL, ControlStage

MAC = "02:00:00:00:00:01"
KINDS: dict[Format, str] = {"csv": "text/csv", "ndjson": "application/x-ndjson"}


async def send(stage: ControlStage, form: Format, content: bytes, **headers: str) -> httpx2.Response:
    return await stage.ask("POST /v1/devices:import", content=content, headers={"Content-Type": KINDS[form], **headers})


class OtherWork:
    """Counts the turns of the event loop that it gets while the app has a file."""

    def __init__(self, content: bytes) -> None:
        self._messages = [(b"", False), (content, True)]
        self._running: asyncio.Task[None] | None = None
        self.turns = 0

    async def receive(self) -> Message:
        content, more = self._messages.pop()
        if more:
            self._running = asyncio.create_task(self.count())
        elif self._running is not None:
            self._running.cancel()
        return {"type": "http.request", "body": content, "more_body": more}

    async def count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.turns += 1


@pytest.mark.parametrize("form", KINDS)
async def test_lines_that_say_nothing_let_other_work_run(stage: ControlStage, form: Format) -> None:
    lines = 100_000
    other, sent = OtherWork(b"mac" * (form == "csv") + b"\n" * lines), list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {FULL}".encode()), (b"content-type", KINDS[form].encode())]
    target = {"path": "/v1/devices:import", "query_string": b"", "root_path": "", "headers": headers}
    await stage.app({"type": "http", "method": "POST", "client": ("127.0.0.1", 1), **target}, other.receive, send)
    assert sent[0]["status"] == 200
    assert other.turns >= lines / 200


@pytest.mark.parametrize("form", KINDS)
async def test_an_export_lets_other_work_run(stage: ControlStage, form: Format) -> None:
    lines = "".join(f"02:00:00:00:{number // 256:02x}:{number % 256:02x}\n" for number in range(400))
    assert (await send(stage, "csv", b"mac\n" + lines.encode())).json()["added"] == 400
    other, turns = OtherWork(b""), list[int]()
    counting = asyncio.create_task(other.count())

    body: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        return body.pop() if body else await asyncio.Future[Message]()

    async def take(message: Message) -> None:
        if b"02:00:00:00" in message.get("body", b""):
            turns.append(other.turns)

    headers = [(b"authorization", f"Bearer {FULL}".encode())]
    target = {"path": "/v1/devices:export", "query_string": f"format={form}".encode(), "root_path": ""}
    request = {"type": "http", "method": "GET", "client": ("127.0.0.1", 1), "headers": headers, **target}
    await stage.app(request, receive, take)
    counting.cancel()
    assert len(set(turns)) == len(turns) == 400 / 50


@pytest.mark.parametrize(("form", "line"), [("csv", b"x\n"), ("ndjson", b"{}\n")])
async def test_an_import_ends_after_too_many_wrong_lines(stage: ControlStage, form: Format, line: bytes) -> None:
    heading = {"csv": f"mac\n{MAC}\n", "ndjson": f'\n{{"mac":"{MAC}"}}\n'}[form].encode()
    most = await send(stage, form, heading + line * MOST_ERRORS)
    assert (most.status_code, most.json()["failed"], len(most.json()["errors"])) == (200, MOST_ERRORS, MOST_ERRORS)
    answer = await send(stage, form, heading + line * (MOST_ERRORS + 1))
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-file")
    assert answer.json()["detail"].startswith("more than 1000 lines cannot be taken, the first one is line 3: mac: ")
    assert answer.json()["errors"][0]["at"] == "line 3"


async def test_a_line_that_is_no_csv_is_refused_and_the_answer_tells_what_was_taken(stage: ControlStage) -> None:
    for end in (b"a\rb\n", b'"open', b'"a"b'):
        answer = await send(stage, "csv", f"mac,name\n{MAC},first\n02:00:00:00:00:02,".encode() + end)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-file")
        assert answer.json()["detail"].startswith("line 3 is no CSV: lines end with")
    assert (await stage.ask(f"GET /v1/devices/{MAC}")).json()["name"] == "first"


async def test_the_audit_log_says_what_an_import_replaced(stage: ControlStage, monkeypatch: pytest.MonkeyPatch) -> None:
    second = "02:00:00:00:00:02"
    await send(stage, "csv", f"mac,name,notes,tag.a\n{MAC},first,N1,t1\n{second},b,,\n".encode())
    content = f"mac,name,notes,tag.a\n{MAC},second,,\n{second},b,,\n".encode()
    await send(stage, "csv", content)
    [changed, added] = (await stage.ask("GET /v1/audit?action=device.import")).json()["items"]
    assert added["after"] == {"added": [MAC, second], "changed": [], "devices": {}}
    assert changed["before"] == {"devices": {MAC: {"name": "first", "notes": "N1", "tags": {"a": "t1"}}}}
    differs = {MAC: {"name": "second", "notes": "", "tags": {"a": ""}}}
    assert changed["after"] == {"added": [], "changed": [MAC], "devices": differs}
    monkeypatch.setattr("fleet.roles.control.routes.device_files.LARGEST_AUDIT", 100)
    lines = [{"mac": MAC, "notes": "n"}, {"mac": second, "notes": "n" * 100}]
    await send(stage, "ndjson", "\n".join(map(json.dumps, lines)).encode())
    [bounded, *_] = (await stage.ask("GET /v1/audit?action=device.import")).json()["items"]
    assert (bounded["after"]["changed"], list(bounded["before"]["devices"])) == ([MAC, second], [MAC])


async def test_no_browser_guesses_what_an_export_is(stage: ControlStage) -> None:
    answer = await stage.ask("GET /v1/devices:export")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")


async def test_a_key_is_refused_since_no_answer_would_be_kept(stage: ControlStage) -> None:
    answer = await send(stage, "csv", b"mac\n", **{"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-key")
    assert (await send(stage, "csv", b"mac\n")).status_code == 200


@pytest.mark.parametrize("form", KINDS)
async def test_an_import_that_is_only_tried_says_what_it_would_do_and_writes_nothing(
    stage: ControlStage, form: Format
) -> None:
    known = b"mac,name\n" + f"{MAC},one\n02:00:00:00:00:02,two\n".encode()
    assert (await send(stage, "csv", known)).json()["added"] == 2
    rows = [{"mac": MAC, "name": "other"}, {"mac": "02:00:00:00:00:02", "name": "two"}, {"mac": "02:00:00:00:00:03"}]
    lines = {
        "csv": "mac,name\n" + "".join(f"{one['mac']},{one.get('name', '')}\n" for one in rows) + "no,mac\n",
        "ndjson": "".join(f"{json.dumps(one)}\n" for one in [*rows, {"mac": "no"}]),
    }[form]
    before = (await stage.ask("GET /v1/devices")).json()
    audit = (await stage.ask("GET /v1/audit")).json()
    kind = {"Content-Type": KINDS[form]}
    answer = await stage.ask("POST /v1/devices:import?dry_run=true", content=lines.encode(), headers=kind)
    told = answer.json()
    assert [told[name] for name in ("added", "changed", "unchanged", "failed")] == [1, 1, 1, 1], answer.text
    assert (await stage.ask("GET /v1/devices")).json() == before
    assert (await stage.ask("GET /v1/audit")).json() == audit
    done = (await send(stage, form, lines.encode())).json()
    assert done == told


async def test_many_lines_of_one_device_are_one_change_and_the_later_ones_count(stage: ControlStage) -> None:
    lines = "".join(f"{MAC},n{number},{number if number < 2 else ''}\n" for number in range(1_000))
    found = (await send(stage, "csv", f"mac,name,tag.site\n{lines}".encode())).json()
    assert (found["added"], found["changed"], found["unchanged"], found["failed"]) == (1, 0, 0, 0)
    device = (await stage.ask(f"GET /v1/devices/{MAC}")).json()
    assert (device["name"], device["tags"]) == ("n999", {})
    audit = (await stage.ask("GET /v1/audit")).json()["items"]
    assert [one["action"] for one in audit].count("device.import") == 1


async def test_lines_of_one_device_with_too_many_tags_together_are_taken_up_to_the_bound(stage: ControlStage) -> None:
    lines = [{"mac": MAC, "tags": {f"k{number}-{at}": "x" for at in range(25)}} for number in range(3)]
    content = "".join(f"{json.dumps(one)}\n" for one in (*lines, {"mac": MAC, "name": "last"}))
    found = (await send(stage, "ndjson", content.encode())).json()
    assert (found["added"], found["failed"]) == (1, 1)
    assert found["errors"] == [{"line": 3, "message": "the device would have too many tags"}]
    device = (await stage.ask(f"GET /v1/devices/{MAC}")).json()
    assert (device["name"], len(device["tags"])) == ("last", 50)


async def test_a_parameter_that_is_named_twice_is_refused(stage: ControlStage) -> None:
    for query in ("dry_run=true&dry_run=false", "dry_run=false&dry_run=true", "dry_run=true&dry_%72un=true"):
        verb = f"POST /v1/devices:import?{query}"
        answer = await stage.ask(verb, content=f"mac\n{MAC}\n".encode(), headers={"Content-Type": "text/csv"})
        assert answer.status_code == 422, query
        assert answer.json()["errors"] == [{"at": "query.dry_run", "message": "is named twice"}]
    assert (await stage.ask(f"GET /v1/devices/{MAC}")).status_code == 404
    assert (await stage.ask("GET /v1/devices?limit=1&limit=2")).status_code == 422
