"""Opens and closes alerts by the rules of each tenant, from the events that control stored.

The place up to which events were looked at changes in the transaction that opens alerts: so a process that is killed
leaves both or none. What adds up stands in SQL: connections are counted in the stored events of the devices that have
just connected, calls of tools by minute.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from fleet.adapters.sql.alert_events import AlertEvents
from fleet.adapters.sql.alert_rows import AlertSite
from fleet.adapters.sql.alert_writes import AlertWrites, alert_writes
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import EventRows
from fleet.core.alert_signs import Breach, Rules, Signs, Subject, read_signs
from fleet.ground.metrics import alerts as counted
from fleet.roles.control.access import milliseconds
from fleet.wire.alert_names import ALERT_RULES, AlertRule

STEP_SECONDS: Final = 1.0
SWEEP_SECONDS: Final = 60.0
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000
_DRIFT: Final = "differs from its desired state"
_CALLS_KEPT_MINUTES: Final = 130
"""Longer than the longest `minutes` of the rule about tools."""


class Alerts:
    """Looks at events every second, and every minute at what no event tells.

    Args:
        database: Where events and alerts are.
        days: How long closed alerts are kept.
    """

    def __init__(self, database: Database, days: float) -> None:
        self._database, self._days = database, days
        self._events, self._site = AlertEvents(database), AlertSite(database)
        self._fence, self._place = 0, -1
        self._open: dict[str, int] = dict.fromkeys(ALERT_RULES, 0)

    async def run(self, fence: str) -> None:
        """Work until cancelled.

        Raises:
            Fenced: There is a newer lease.
            Unavailable: The database does not answer; call it again.
        """
        await self.begin(int(fence))
        clock = asyncio.get_running_loop().time
        swept = float("-inf")
        with counted.following_open(self._open):
            while True:
                begun = clock()
                if begun - swept > SWEEP_SECONDS:
                    await self.sweep(milliseconds())
                    swept = begun
                more = await self.step(milliseconds())
                await asyncio.sleep(0 if more else max(0.0, begun + STEP_SECONDS - clock()))

    async def begin(self, fence: int) -> None:
        """Take over from an earlier lease; begin behind the last event that it looked at."""
        await EventRows(self._database, fence).begin()
        self._fence, self._place = fence, await self._site.place()
        if self._place < 0:
            self._place = await self._events.newest()

    async def step(self, now: int) -> bool:
        """Look at the next events; return whether there are more."""
        batch = await self._events.after(self._place)
        rules = await self._site.rules()
        signs = read_signs(batch.events, rules)
        flaps = await self._flaps(signs, rules, max((one.at for one in batch.events), default=now))
        if batch.events or await self._site.unannounced():
            async with alert_writes(self._database, self._fence, now) as writes:
                await writes.count_calls(signs.calls)
                breaches = [*flaps, *await _tools(writes, signs, rules, now)]
                await writes.begin([*breaches, *(one for one in signs.jobs.values() if one is not None)])
                await writes.end(subject for subject, one in signs.jobs.items() if one is None)
                await writes.end(_connected(signs))
                await writes.announce_closed()
                await writes.move(batch.place)
            await self._count(writes.opened)
        self._place = batch.place
        return batch.more

    async def sweep(self, now: int) -> None:
        """Find who is silent, what waits, and whose breach is over."""
        rules = await self._site.rules()
        limits = {tenant: now - round(one["silent"].thresholds["days"] * _DAY_MS) for tenant, one in rules.items()}
        while gone := await self._events.gone(limits):
            await self._write(now, (), gone)
        for tenant, known in rules.items():
            await self._sweep_tenant(tenant, known, limits[tenant], now)
        async with alert_writes(self._database, self._fence, now) as writes:
            for tenant, known in rules.items():
                for rule, terms in known.items():
                    if not terms.enabled:
                        await writes.end_rule(tenant, rule)
            await writes.end_old()
            await writes.forget_calls(now // _MINUTE_MS - _CALLS_KEPT_MINUTES)
            await writes.announce_closed()
        await self._count(writes.opened)
        while await self._site.forget(now - round(self._days * _DAY_MS)):
            pass

    async def _sweep_tenant(self, tenant: int, rules: Rules, silent_since: int, now: int) -> None:
        text = f"not connected for {rules['silent'].thresholds['days']:g} days"
        while rules["silent"].enabled and (macs := await self._events.silent(tenant, silent_since)):
            await self._write(now, [Breach(Subject(tenant, "silent", mac), text) for mac in macs], ())
        while rules["drift"].enabled and (macs := await self._events.drifting(tenant)):
            await self._write(now, [Breach(Subject(tenant, "drift", mac), _DRIFT) for mac in macs], ())
        if rules["waiting"].enabled:
            before = now - round(rules["waiting"].thresholds["hours"] * 60 * _MINUTE_MS)
            jobs = await self._events.waiting_jobs(tenant, before)
            waiting = {Subject(tenant, "waiting", name=name): text for name, text in jobs.items()}
            over = [one for one in await self._site.present(tenant, "waiting") if one not in waiting]
            if waiting or over:
                await self._write(now, [Breach(subject, about) for subject, about in waiting.items()], over)

    async def _write(self, now: int, breaches: Iterable[Breach], over: Iterable[Subject]) -> None:
        async with alert_writes(self._database, self._fence, now) as writes:
            await writes.begin(breaches)
            await writes.end(over)
        await self._count(writes.opened)

    async def _count(self, opened: Counter[AlertRule]) -> None:
        for rule, count in opened.items():
            counted.opened.add(rule, count=count)
        now_open = await self._site.open()
        self._open.update((rule, now_open[rule]) for rule in ALERT_RULES)

    async def _flaps(self, signs: Signs, rules: Mapping[int, Rules], at: int) -> list[Breach]:
        """Return the devices that connected too often; `at` is the newest event, which may have waited for control."""
        found = []
        for tenant, macs in signs.connected.items():
            terms = rules[tenant]["flapping"]
            if terms.enabled:
                span, least = round(terms.thresholds["minutes"] * _MINUTE_MS), round(terms.thresholds["connections"])
                for mac, count in (await self._events.connections(tenant, macs, at - span, least)).items():
                    text = f"{count} connections in {terms.thresholds['minutes']:g} minutes"
                    found.append(Breach(Subject(tenant, "flapping", mac), text, at + span))
        return found


async def _tools(writes: AlertWrites, signs: Signs, rules: Mapping[int, Rules], now: int) -> list[Breach]:
    """Return the tools too many of whose calls failed."""
    touched: dict[int, set[str]] = {}
    for tenant, tool, _, is_failure in signs.calls:
        if is_failure:
            touched.setdefault(tenant, set()).add(tool)
    found = []
    for tenant, tools in touched.items():
        terms = rules[tenant]["tools"].thresholds
        minutes = round(terms["minutes"])
        for tool, (total, failed) in (await writes.calls(tenant, tools, now // _MINUTE_MS - minutes)).items():
            if total >= terms["sample"] and failed > terms["share"] * total:
                text = f"{failed} of {total} calls failed in {minutes} minutes"
                found.append(Breach(Subject(tenant, "tools", name=tool), text, now + minutes * _MINUTE_MS))
    return found


def _connected(signs: Signs) -> Iterable[Subject]:
    return (Subject(tenant, "silent", mac) for tenant, macs in signs.connected.items() for mac in macs)
