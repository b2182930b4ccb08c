"""A control with a small made-up fleet, in a thread of its own, so that a test may drive a browser without a loop."""

import asyncio
import importlib.metadata
import json
import random
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from sqlalchemy import insert, update

from fleet import DISTRIBUTION
from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.devices.tools import pack_tools
from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.processes import Processes, ProcessRecord
from fleet.adapters.sql.account_rows import AccountRows
from fleet.adapters.sql.alert_schema import ALERT, ALERT_SUBJECT
from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.device_conditions import search_text
from fleet.adapters.sql.event_rows import EventRows, NewEvent
from fleet.adapters.sql.image_rows import ImageRows, NewImage
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, DEVICE_TAG, PRESENCE
from fleet.core.memory import MemoryChanges
from fleet.core.query.fields import version_number
from fleet.ground.tasks import running
from fleet.wire.control.images import ImageKind
from fleet.wire.mcp import ToolSpec
from fleet.wire.reminders import Reminder
from tests.support.control_server import FULL, ControlStage, control_stage, empty_control
from tests.support.job_site import JobSite
from tests.support.memory_store import memory_store
from tests.support.migrated import migrated_sqlite
from tests.support.offered_firmware import image_of
from tests.support.patience import REDIS, SQL, lengthen

T = TypeVar("T")
Kind = Literal["full", "shown", "empty", "new"]
LIMIT = 240.0
KEPT = ("fleet.adapters.redis.keys.PROCESS_SECONDS", "fleet.adapters.redis.sessions.transcripts.WATCHED_SECONDS")
"""How long Redis keeps what a test has written, or waits for, until the next step of the test."""
FIRST = mac_number("02:00:00:00:00:01")
COUNT = 64
SETTINGS = {"rate_control": "10000/100000", "http_public": "http://192.0.2.7:8002"}
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
NAMES = ("Kitchen", "Lobby", "厨房", "Room", "前台", "Garden", "Workshop", "客厅", "Library", "Canteen")
BOARDS = ("bread-compact-wifi", "esp-box-3", "m5stack-core-s3", "lichuang-dev")
IMAGE_KINDS: tuple[ImageKind, ...] = ("firmware", "assets")
VOICES = ("zf_own", "zf_xiaoxiao", "zm_yunxi")
SITES = ("berlin", "shenzhen", "lyon")
PUBLISHED = {"prompt": "You are the concierge of a hotel.\nAnswer briefly and politely.", "language": "en"}
DRAFT = {**PUBLISHED, "prompt": f"{PUBLISHED['prompt']}\nOffer to call the reception.", "voice": {"speed": 1.1}}


@dataclass(frozen=True, slots=True)
class Texts:
    """What devices and people say of themselves."""

    name: str
    tool: str
    fact: str
    said: str
    error: str
    board: str


STRANGE = Texts(HOSTILE, f"self.{HOSTILE}"[:128], HOSTILE, HOSTILE, HOSTILE, HOSTILE)
FRIENDLY = Texts(
    "Garden 3", "self.screen.set_theme", "Ada wakes at seven.", "Good night!", "no answer in 10 s", "m5stack-core-s3"
)
"""For pictures: a reader should not wonder about attacks."""


TOOLS = (
    ToolSpec(name="self.get_device_status", description="Tells volume, brightness, battery and network."),
    ToolSpec(
        name="self.audio_speaker.set_volume",
        description="Sets the volume of the speaker.",
        input_schema={
            "type": "object",
            "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
            "required": ["volume"],
        },
    ),
)


class ConsoleSite:
    """Control, its database and its Redis; methods may be called from any thread."""

    def __init__(self, stage: ControlStage, loop: asyncio.AbstractEventLoop, texts: Texts = STRANGE) -> None:
        self.stage, self._loop, self._texts = stage, loop, texts
        self.url = str(stage.client.base_url).rstrip("/")
        self.macs = [mac_text(FIRST + number) for number in range(COUNT)]

    @classmethod
    @contextmanager
    def running(cls, folder: Path, kind: Kind = "full", **settings: Any) -> Iterator["ConsoleSite"]:
        """Run a site beside the block: with the fleet, with one for pictures, with a token alone, or with nothing."""
        ready, over = threading.Event(), threading.Event()
        found: list[ConsoleSite] = []

        async def work() -> None:
            with pytest.MonkeyPatch.context() as patch:
                lengthen(patch, (*REDIS, *SQL), LIMIT)
                lengthen(patch, KEPT, int(LIMIT))
                await serve_site()

        async def serve_site() -> None:
            database, store = Database(database_url(await migrated_sqlite(folder / "fleet.db"))), await memory_store()
            serve = empty_control if kind == "new" else control_stage
            async with serve(database, store, folder, **{**SETTINGS, **settings}) as stage:
                site = cls(stage, asyncio.get_running_loop(), FRIENDLY if kind == "shown" else STRANGE)
                if kind in ("full", "shown"):
                    await site.fill()
                async with (
                    running("followers", stage.services.following.run),
                    running("edge", site.announce_edge),
                ):
                    found.append(site)
                    ready.set()
                    await asyncio.to_thread(over.wait)
            await store.close()
            await database.close()

        thread = threading.Thread(target=asyncio.run, args=(work(),), name="console-site", daemon=True)
        thread.start()
        assert ready.wait(LIMIT)
        yield found[0]
        over.set()
        thread.join(LIMIT)

    async def first_code(self) -> str:
        """Return the code that makes the first owner."""
        return await self.stage.services.first_token.make(self.stage.database)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop of the site."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT)

    async def fill(self) -> None:
        """Add the fleet, and what happened to it."""
        await self._add_devices()
        await self._add_history()
        await self._add_objects()
        await self._add_alert()
        store, mac = self.stage.services.store, self.macs[0]
        await store.ask(store.client.set(store.keys.tools(mac), await pack_tools((*TOOLS, self._own_tool()))))
        owner = await Leases(store, "w", 100_000).take(store.keys.shard(mac))
        assert owner is not None
        facts = ("The user's name is Ada.", "Ada likes jasmine tea.", self._texts.fact)
        await Memories(store).change(owner, mac, MemoryChanges(add=facts))
        for name, clock in (("r1", ""), ("r2", "07:30")):
            wanted = Reminder(id=name, text=self._texts.fact, due=4_000_000_000_000, clock=clock)
            await Reminders(store).add(owner, mac, wanted)
        if self._texts is FRIENDLY:
            await self._let_connect(mac)
            wish = {"desired": {"volume": 40, "theme": "dark"}, "policies": {"volume": "enforce"}}
            await self.ask(f"PATCH /v1/devices/{mac}/desired", json=wish)
        await Activations(store).begin(self.macs[1], "00000000-0000-4000-8000-000000000001", "", with_code=True)
        await self._add_jobs()

    async def announce_edge(self) -> None:
        """Stand for a running edge."""
        while True:
            await Edges(self.stage.services.store).announce(
                EdgeRecord("edge-b2", "203.0.113.7", 8884, 3, voices=VOICES)
            )
            if self._texts is FRIENDLY:
                await self._announce_processes()
            await asyncio.sleep(1)

    async def _announce_processes(self) -> None:
        store, broker = self.stage.services.store, "broker.example:8883"
        version, began = importlib.metadata.version(DISTRIBUTION), _now() // 86_400_000 * 86_400_000
        for number, role in enumerate(("api", "control", "edge", "worker")):
            place = broker if role in ("edge", "worker") else ""
            record = ProcessRecord(f"node-{number}", role, version, began, "", place, connected=bool(place))
            await Processes(store).announce(record)

    async def _let_connect(self, mac: str) -> None:
        """Write what the roles know of a device that nobody has talked to."""
        store = self.stage.services.store
        record = {"host": "192.0.2.17", "board": BOARDS[0], "fw": "2.5.0", "ep": "1", "tep": "1", "on": "1"}
        await store.ask(store.client.hset(store.keys.device(mac), mapping=record))
        await store.ask(store.client.zadd(store.keys.seen(store.keys.shard(mac)), {mac: _now() // 1000 - 60}))

    async def add_owner(self, name: str, password: str) -> None:
        """Add an account that may do everything."""
        await self.ask("POST /v1/accounts", json={"name": name, "role": "owner", "password": password})

    async def end_sign_ins(self) -> None:
        """Let all sign-ins expire."""
        found = [key async for key in self.stage.services.store.client.scan_iter(match="sign_in:*")]
        digests = [key.removeprefix("sign_in:") for key in found]
        for digest in digests:
            await self.stage.services.accounts.remove(digest)
        # A request that was under way may have noted one of them once more.
        self.stage.services.accounts.forget(digests)

    async def let(self, kind: str, mac: str = "", **data: Any) -> None:
        """Let something happen now, and give it to those who follow."""
        await self.store_events([(_now(), kind, mac or self.macs[0], data)], offer=True)

    async def watched(self, mac: str) -> None:
        """Wait until somebody watches a device."""
        store = self.stage.services.store
        while not await store.ask(store.client.exists(store.keys.transcript(mac))):
            await asyncio.sleep(0.02)

    async def say(self, mac: str, kind: str, **data: Any) -> None:
        """Write a line of a live transcript."""
        await Transcripts(self.stage.services.store).write(mac, [(kind, data)])

    async def store_events(self, events: list[tuple[int, str, str, dict[str, Any]]], *, offer: bool = False) -> None:
        made = [NewEvent(0, "", at, kind, mac, json.dumps(data)) for at, kind, mac, data in events]
        rows = EventRows(self.stage.database, 1)
        await rows.begin()
        stored = await rows.store(made, {})
        if offer:
            self.stage.services.following.tail.offer(stored)

    async def ask(self, verb: str, **more: Any) -> Any:
        answer = await self.stage.ask(verb, FULL, **more)
        assert answer.is_success, (verb, answer.text)
        return answer.json() if answer.content else None

    def _own_tool(self) -> ToolSpec:
        """Return the tool of which the device itself has named everything."""
        name = self._texts.name
        schema = {"type": "object", "properties": {name: {"type": "string", "description": name}}}
        return ToolSpec(name=self._texts.tool, description=name, input_schema=schema)

    async def _add_devices(self) -> None:
        draw, devices, tags, presence = random.Random(7), list[Any](), list[Any](), list[Any]()
        known = dict[str, dict[str, str]]()
        for number, mac in enumerate(self.macs):
            name, site = f"{NAMES[number % len(NAMES)]} {number + 1}", SITES[number % len(SITES)]
            firmware, online = draw.choice(("2.4.2", "2.4.2", "2.5.0", "2.3.1")), draw.random() < 0.75 or number < 2
            seen = _now() - (0 if online else draw.randrange(20 * 86_400)) * 1000 - 40_000
            state = "waiting" if number == 1 else "refused" if number == 40 else "bound"
            serial, key = f"SN{number:06}", mac_number(mac)
            row = {"mac": key, "tenant": 1, "name": name, "board": BOARDS[number % 4], "firmware": firmware}
            row |= {"firmware_number": version_number(firmware), "serial": serial, "state": state, "online": online}
            row |= {"first_seen": seen - 40 * 86_400_000, "last_seen": seen, "last_boot": seen - 3_600_000}
            row |= {"search": search_text(key, name, serial, ""), "language": "zh-CN" if number % 2 else "en-US"}
            devices.append(row)
            if online and number >= len(NAMES):
                known[mac] = {"on": "1", "dialect": "xiaozhi", "fw": firmware, "host": "192.0.2.17"}
            tags += [{"tenant": 1, "key": "site", "value": site, "mac": key}]
            tags += [{"tenant": 1, "key": "floor", "value": str(number % 4), "mac": key}]
        for number in range(30):
            at = _now() - (number * 5 + 1) * 3_600_000
            presence.append({"tenant": 1, "mac": FIRST, "at": at, "online": number % 2 == 0})
        async with self.stage.database.writing() as connection:
            await connection.execute(insert(DEVICE), devices)
            await connection.execute(insert(DEVICE_TAG), tags)
            await connection.execute(insert(PRESENCE), presence)
            name = self._texts.name
            named = update(DEVICE).where(DEVICE.c.mac == mac_number(self.macs[2]))
            named = named.values(name=name, notes=name, board=self._texts.board)
            await connection.execute(named)
        store = self.stage.services.store
        for mac, record in known.items():
            await store.ask(store.client.hset(store.keys.device(mac), mapping=record))

    async def _add_history(self) -> None:
        draw, events = random.Random(3), list[tuple[int, str, str, dict[str, Any]]]()
        for day in range(28, -1, -1):
            for number in range(6 + draw.randrange(10)):
                mac, at = self.macs[draw.randrange(20)], _now() - day * 86_400_000 - draw.randrange(3_000) * 1000
                events += _turns(draw, mac, at, f"s{day}-{number}", self._texts.said)
        await self.store_events(sorted(events, key=lambda one: one[0]))

    async def _add_objects(self) -> None:
        await self.ask("POST /v1/groups", json={"name": "Berlin", "query": "tag.site=berlin", "notes": "The hotel"})
        group = await self.ask("POST /v1/groups", json={"name": "Pilot devices", "notes": "First to get changes"})
        await self.ask(f"POST /v1/groups/{group['id']}/members:add", json={"macs": self.macs[:6]})
        agent = await self.ask("POST /v1/agents", json={"name": "concierge", "notes": "Hotel", "draft": PUBLISHED})
        await self.ask(f"POST /v1/agents/{agent['id']}:publish")
        await self.ask(f"PATCH /v1/agents/{agent['id']}", json={"draft": DRAFT})
        await self.ask(f"POST /v1/agents/{agent['id']}:publish")
        await self.ask(f"PATCH /v1/agents/{agent['id']}", json={"draft": {**DRAFT, "greeting": "Good day!"}})
        await self.ask(f"POST /v1/agents/{agent['id']}:assign", json={"group": 1})
        await self.ask("POST /v1/agents", json={"name": "teacher", "draft": {"language": "zh"}})
        provider = {"name": "house", "kind": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "qwen3-8b"}
        await self.ask("POST /v1/providers", json=provider)
        for version in ("2.4.2", "2.5.0"):
            await self._add_image(version)
        await self._add_image("words-7", "assets")
        await self._add_own_image()
        await AccountRows(self.stage.database).add(1, "mia", "operator", "no hash", _now())

    async def _add_alert(self) -> None:
        about = {"tenant": 1, "rule": "tools"}
        alert = {"id": 1, **about, "opened": _now() - 900_000, "closed_by": "", "announced": True}
        subject = {"alert": 1, **about, "since": _now() - 900_000, "text": self._texts.error}
        subjects = [{**subject, "mac": mac, "name": self._texts.tool} for mac in (0, mac_number(self.macs[3]))]
        async with self.stage.database.writing() as connection:
            await connection.execute(insert(ALERT), alert)
            await connection.execute(insert(ALERT_SUBJECT), subjects)

    async def _add_image(self, version: str, kind: str = "firmware") -> None:
        path = f"POST /v1/firmware?board={BOARDS[0]}&version={version}&kind={kind}"
        headers = {"Content-Type": "application/octet-stream"}
        await self.ask(path, content=image_of(version, 3_000_000), headers=headers)

    async def _add_own_image(self) -> None:
        """Add an image of a board that a device itself has named."""
        texts, hash_of_none = self._texts, "ab" * 32
        version = texts.name if texts is STRANGE else "words-8"
        image = NewImage("assets", texts.board, version, hash_of_none, 2_000_000, _now(), "account:mia")
        await ImageRows(self.stage.database, 1).add(image)

    async def _add_jobs(self) -> None:
        site, tool = JobSite(self.stage.database, self.stage.services.store), "self.reboot"
        await site.lead()
        await site.connect(self.macs)
        ending = {"expires": _now() + 86_400_000}
        about = {"created": _now() - 3_600_000, "kind": "reboot", "tool": "", **ending}
        fast = {"rate": 1000}
        ok = await site.add_job(name="Restart the pilot devices", query="tag.floor=1", policy=fast, **about)
        stages = [{"count": 4, "min_success": 0.9, "min_sample": 4}, {"share": 0.5, "soak_seconds": 600}, {"share": 1}]
        policy = {"stages": stages, "rate": 1000, "window": 20, "halt_sample": 4}
        await site.prepare()
        await site.run(ok.id)
        bad = await site.add_job(name="Restart Berlin", query="tag.site=berlin", policy=policy, **about)
        await site.prepare()
        await site.run(bad.id, lambda call: ("error", f"{tool}: {self._texts.error}"))
        for kind in IMAGE_KINDS:
            image = next(one for one in await ImageRows(self.stage.database, 1).list() if one.kind == kind)
            order = {"kind": kind, kind: {"image": image.id}, "tool": "", "policy": policy}
            given = await site.add_job(
                name=f"{image.board} {image.version}"[:63],
                query=f"board={BOARDS[0]}",
                image=image,
                created=_now() - 1_800_000,
                **ending,
                **order,
            )
            await site.prepare()
            await site.run(given.id, lambda call: ("error", self._texts.error))


def _turns(
    draw: random.Random, mac: str, at: int, session: str, last: str
) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    said = (
        ("What time is breakfast?", "Breakfast is from seven to half past ten, in the winter garden."),
        ("把音量调到四十", "好的，音量已经调到四十。"),
        ("Tell me about the museum.", "It is five minutes on foot, and open until six today."),
        (last, f"You said: {last}"),
    )
    yield at, "session.started", mac, {"session": session, "dialect": "xiaozhi"}
    for number in range(1 + draw.randrange(4)):
        user, answer = said[draw.randrange(len(said)) if number else draw.randrange(3)]
        heard, token = 180 + draw.randrange(200), 250 + draw.randrange(300)
        stages = {"heard": heard, "first_token": token, "first_sentence": token + 160, "written": token + 900}
        kind = "turn.failed" if draw.random() < 0.04 else "turn.answered"
        turn = f"{session}-{number}"
        language = "en" if user.isascii() else "zh"
        data = {"turn": turn, "session": session, "agent": "concierge", "language": language, "stages": stages}
        data |= {"user": user, "answer": answer, "speech_ms": 1800, "input_tokens": 640, "output_tokens": 48}
        yield at + number * 9_000 + 4_000, kind, mac, {**data, "tools": ["set_volume"] if "四十" in answer else []}
        spoken = {"turn": turn, "first_audio_ms": heard + token + 420, "spoken_ms": 3200, "interrupted": False}
        yield at + number * 9_000 + 8_000, "turn.spoken", mac, spoken
    yield at + 45_000, "session.ended", mac, {"session": session, "reason": "goodbye"}


def _now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)
