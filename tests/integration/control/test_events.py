"""Events, conversations and usage over the REST API."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.adapters.redis.shards.events import Outbox
from fleet.adapters.sql.account_rows import AccountRows
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.ground.tasks import running
from fleet.roles.control.access import Principal
from fleet.roles.control.accounts.access import AccountAccess
from fleet.roles.control.following import feed, live
from fleet.roles.control.leader.event_collector import EventCollector
from tests.support.console_browser import add_account, console_browser
from tests.support.control_server import FULL, STRANGER, ControlStage

MAC, OTHER, FOREIGN = "aa:bb:cc:00:00:01", "aa:bb:cc:00:00:02", "aa:bb:cc:00:00:03"
EVENTS = {"Accept": "text/event-stream"}


class Happening:
    """Lets events happen, and collects them as the leader does."""

    def __init__(self, stage: ControlStage) -> None:
        self.stage, self.store = stage, stage.services.store
        following, shards = stage.services.following, range(self.store.keys.shards)
        self.collector = EventCollector(Outbox(self.store), stage.database, _copied, following.tail.offer, shards)

    async def let(self, kind: str, mac: str = MAC, **data: Any) -> None:
        key = self.store.keys.events(self.store.keys.shard(mac))
        text = json.dumps(data)
        await self.store.client.execute_command("XADD", key, "NOMKSTREAM", "*", "k", kind, "m", mac, "d", text)
        await self.collector.step()


async def _copied(_: object) -> int:
    return 0


@pytest.fixture
async def happening(stage: ControlStage) -> AsyncIterator[Happening]:
    one = Happening(stage)
    await one.collector.begin(1)
    await DeviceRows(stage.database, 1).add([NewDevice(MAC, tags={"site": "berlin"}), NewDevice(OTHER)])
    await DeviceRows(stage.database, 2).add([NewDevice(FOREIGN)])
    async with running("followers", stage.services.following.run):
        yield one


async def test_the_newest_events_are_read_without_the_older_ones(happening: Happening) -> None:
    for number in range(4):
        await happening.let("device.offline" if number == 3 else "turn.answered", number=number)
    await happening.let("turn.failed", FOREIGN)
    page = (await happening.stage.ask("GET /v1/events?newest=true&limit=3&kinds=turn")).json()
    assert [one["data"]["number"] for one in page["items"]] == [1, 2]
    assert (page["next"], page["gap"]) == (None, False)
    one = (await happening.stage.ask(f"GET /v1/events?newest=true&limit=1&device={MAC}")).json()["items"]
    assert [event["kind"] for event in one] == ["device.offline"]


class Stream:
    """A stream that a client reads."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def next(self) -> tuple[str, str, Any]:
        """Return id, event and data of the next frame."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(240):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if line and name in ("id", "event", "data"):
                    fields[name] = value
                elif not line and "event" in fields:
                    return fields.get("id", ""), fields["event"], json.loads(fields["data"])
        raise AssertionError("the stream has ended")


@asynccontextmanager
async def follow(stage: ControlStage, path: str, token: str = FULL, **headers: str) -> AsyncIterator[Stream]:
    head = {"Authorization": f"Bearer {token}", **EVENTS, **headers}
    async with stage.client.stream("GET", path, headers=head) as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-accel-buffering"] == "no"
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 2000"
        yield Stream(lines)


async def test_a_client_follows_its_own_tenants_events(stage: ControlStage, happening: Happening) -> None:
    async with (
        follow(stage, "/v1/events") as everything,
        follow(stage, "/v1/events?kinds=turn&filter=tag.site=berlin") as berlin,
        follow(stage, f"/v1/events?device={OTHER}") as one,
        follow(stage, "/v1/events", STRANGER) as stranger,
    ):
        await happening.let("device.online", OTHER)
        await happening.let("turn.answered", OTHER, turn="t1")
        await happening.let("turn.answered", turn="t2")
        await happening.let("turn.answered", FOREIGN, turn="t3")
        assert [(await everything.next())[:2] for _ in range(3)] == [
            ("1", "device.online"),
            ("2", "turn.answered"),
            ("3", "turn.answered"),
        ]
        number, kind, told = await berlin.next()
        assert (number, kind, told["device"], told["data"]) == ("3", "turn.answered", MAC, {"turn": "t2"})
        assert [(await one.next())[0] for _ in range(2)] == ["1", "2"]
        assert (await stranger.next())[2]["data"] == {"turn": "t3"}
    async with follow(stage, "/v1/events", **{"Last-Event-ID": "1"}) as again:
        assert [(await again.next())[0] for _ in range(2)] == ["2", "3"]
        await happening.let("session.ended", reason="idle")
        assert (await again.next())[1] == "session.ended"


async def test_stored_events_come_page_by_page(stage: ControlStage, happening: Happening) -> None:
    for number in range(5):
        await happening.let("turn.answered", MAC if number % 2 else OTHER, turn=f"t{number}")
    page = (await stage.ask("GET /v1/events?limit=3")).json()
    assert [one["id"] for one in page["items"]] == [1, 2, 3] and page["next"] == 3 and not page["gap"]
    page = (await stage.ask("GET /v1/events?limit=3&after=3")).json()
    assert [one["data"]["turn"] for one in page["items"]] == ["t3", "t4"] and page["next"] is None
    assert (await stage.ask(f"GET /v1/events?device={MAC}")).json()["items"][0]["id"] == 2
    assert (await stage.ask("GET /v1/events?filter=tag.site=berlin&kinds=turn.failed")).json()["items"] == []
    assert (await stage.ask("GET /v1/events", STRANGER)).json()["items"] == []
    for wrong in ("filter=nofield=1", "filter=%00", "kinds=" + ",".join(map(str, range(40)))):
        answer = await stage.ask(f"GET /v1/events?{wrong}")
        assert answer.status_code == 400, answer.text
    assert (await stage.ask("GET /v1/events?after=-1")).status_code == 422
    assert (await stage.ask("GET /v1/events?device=x")).status_code == 404
    answer = await stage.ask("GET /v1/events", headers={**EVENTS, "Last-Event-ID": "x"})
    assert answer.status_code == 400


async def test_a_stopping_process_ends_its_streams(stage: ControlStage, happening: Happening) -> None:
    async with follow(stage, "/v1/events") as stream:
        stage.services.following.close()
        with pytest.raises(AssertionError, match="ended"):
            await stream.next()
    assert (await stage.ask("GET /v1/events", headers=EVENTS)).status_code == 503


async def test_streams_end_with_their_token(
    stage: ControlStage, happening: Happening, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [await stage.add_token(f"flt_{number}", "events:read", "conversations:read") for number in range(2)]
    listed = {one["name"]: one["id"] for one in (await stage.ask("GET /v1/tokens")).json()["items"]}
    async with (
        follow(stage, "/v1/events") as other,
        follow(stage, "/v1/events", tokens[0]) as first,
        follow(stage, f"/v1/devices/{MAC}/transcript", tokens[0]) as watched,
        follow(stage, "/v1/events", tokens[1]) as second,
    ):
        with monkeypatch.context() as patch:
            # Revoking itself ends the streams, not the look for revoked tokens.
            patch.setattr(stage.services.following.tokens, "existing", _all_exist)
            assert (await stage.ask(f"DELETE /v1/tokens/{listed['flt_0']}")).status_code == 204
            for stream in (first, watched):
                with pytest.raises(AssertionError, match="ended"):
                    await stream.next()
        # As another process does it.
        await stage.services.tokens.remove(1, listed["flt_1"])
        await stage.services.following.check_principals()
        with pytest.raises(AssertionError, match="ended"):
            await second.next()
        await happening.let("turn.answered", turn="t1")
        assert (await other.next())[1] == "turn.answered"


async def test_streams_end_with_their_sign_in(
    stage: ControlStage, happening: Happening, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = await add_account(stage, "ling", "operator")
    async with console_browser(stage) as browser, console_browser(stage) as another:
        for one in (browser, another):
            await one.sign_in("ling")
        async with (
            follow(stage, "/v1/events") as other,
            browser.follow("/v1/events") as first,
            browser.follow(f"/v1/devices/{MAC}/transcript") as watched,
            another.follow("/v1/events") as second,
        ):
            with monkeypatch.context() as patch:
                # Signing out itself ends the streams, not the look for ended sign-ins.
                patch.setattr(AccountAccess, "ended", _none_ended)
                assert (await browser.ask("DELETE /v1/session")).status_code == 204
                for lines in (first, watched):
                    assert await _next_line(lines) == ""
            # As another process does it.
            await AccountRows(stage.database).change(account.id)
            await stage.services.following.check_principals()
            assert await _next_line(second) == ""
            await happening.let("turn.answered", turn="t1")
            assert (await other.next())[1] == "turn.answered"


async def test_a_token_that_follows_too_much_is_told_so(
    stage: ControlStage, happening: Happening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MOST_FOLLOWERS", 4)
    monkeypatch.setattr(live, "MOST_WATCHERS", 4)
    for path, what in (("/v1/events", "event streams"), (f"/v1/devices/{MAC}/transcript", "watched transcripts")):
        async with follow(stage, path):
            answer = await stage.ask(f"GET {path}", headers=EVENTS)
            assert answer.status_code == 429 and answer.headers["retry-after"] == "30"
            assert answer.json()["code"] == "too-many-streams"
            assert answer.json()["detail"] == f"too many {what} of one token at a time: at most 1"


async def _next_line(lines: AsyncIterator[str]) -> str:
    """Return the next line of a stream that says something; an empty text at its end."""
    return await anext((line async for line in lines if line and not line.startswith(":")), "")


async def _none_ended(access: AccountAccess, principals: Collection[Principal]) -> set[Principal]:
    return set()


async def _all_exist(tokens: Collection[int]) -> set[int]:
    return set(tokens)


async def test_a_watched_device_shows_what_is_said(stage: ControlStage, happening: Happening) -> None:
    async with follow(stage, f"/v1/devices/{MAC}/transcript") as stream:
        transcripts = Transcripts(happening.store)
        async with asyncio.timeout(240):
            while not await happening.store.client.exists(happening.store.keys.transcript(MAC)):
                await asyncio.sleep(0)
        await transcripts.write(MAC, [("turn.heard", {"text": "Hi?"})])
        assert (await stream.next())[1:][0] == "turn.heard"
    assert (await stage.ask(f"GET /v1/devices/{MAC}/transcript", STRANGER)).status_code == 404
    token = await stage.add_token("flt_events", "events:read")
    assert (await stage.ask(f"GET /v1/devices/{MAC}/transcript", token)).status_code == 403
    audit = (await stage.ask("GET /v1/audit")).json()["items"]
    assert [row["object"] for row in audit if row["action"] == "conversation.watch"] == [f"device/{MAC}"]


async def test_conversations_are_read_exported_and_deleted(stage: ControlStage, happening: Happening) -> None:
    await happening.let("turn.answered", turn="t1", session="s1", user="What time is it?", answer="Noon.")
    await happening.let("turn.failed", OTHER, turn="t2", session="s2", user="Sing", answer="")
    await happening.let("turn.answered", FOREIGN, turn="t3", session="s3", user="Psst", answer="")
    page = (await stage.ask("GET /v1/conversations?limit=1")).json()
    assert [one["device"] for one in page["items"]] == [OTHER] and page["next"]
    page = (await stage.ask(f"GET /v1/conversations?limit=1&cursor={page['next']}")).json()
    assert [one["device"] for one in page["items"]] == [MAC] and page["next"] is None
    assert (await stage.ask(f"GET /v1/conversations?cursor={page['next']}x")).status_code == 400
    (found,) = (await stage.ask("GET /v1/conversations?words=TIME")).json()["items"]
    told = (await stage.ask(f"GET /v1/conversations/{found['id']}")).json()
    assert [(one["question"], one["answer"], one["outcome"]) for one in told["turns"]] == [
        ("What time is it?", "Noon.", "answered")
    ]
    lines = (await stage.ask("GET /v1/conversations:export")).text.splitlines()
    assert {json.loads(line)["question"] for line in lines} == {"What time is it?", "Sing"}
    for verb in ("GET", "DELETE"):
        assert (await stage.ask(f"{verb} /v1/conversations/{found['id']}", STRANGER)).status_code == 404
    assert (await stage.ask(f"DELETE /v1/conversations/{found['id']}")).status_code == 204
    assert (await stage.ask(f"GET /v1/conversations/{found['id']}")).status_code == 404
    assert (await stage.ask(f"DELETE /v1/devices/{OTHER}/data")).json() == {"conversations": 1, "events": 1, "usage": 1}
    assert (await stage.ask(f"DELETE /v1/devices/{OTHER}/data", STRANGER)).status_code == 404
    actions = [row["action"] for row in (await stage.ask("GET /v1/audit")).json()["items"]]
    assert sorted(actions) == ["conversation.delete", "conversation.export", "conversation.read", "device.data.delete"]


async def test_usage_is_summed_by_what_is_asked(stage: ControlStage, happening: Happening) -> None:
    await happening.let("turn.answered", turn="t1", input_tokens=7, speech_ms=900, agent="a")
    await happening.let("turn.interrupted", OTHER, turn="t2", input_tokens=3)
    items = (await stage.ask("GET /v1/usage?by=device,agent")).json()["items"]
    assert [(one["device"], one["agent"], one["turns"], one["input_tokens"]) for one in items] == [
        (MAC, "a", 1, 7),
        (OTHER, "", 1, 3),
    ]
    days = (await stage.ask("GET /v1/usage")).json()["items"]
    # A midnight may have come between them.
    assert [sum(day[what] for day in days) for what in ("turns", "interrupted")] == [2, 1]
    assert all(day["day"] and day["device"] is None for day in days)
    assert (await stage.ask(f"GET /v1/usage?by=&device={MAC}")).json()["items"][0]["speech_ms"] == 900
    assert (await stage.ask("GET /v1/usage?until=2020-01-01")).json()["items"] == []
    assert (await stage.ask("GET /v1/usage", STRANGER)).json()["items"] == []
    assert (await stage.ask("GET /v1/usage?by=moon")).status_code == 400
