"""`/v1/alerts` and `/v1/alert-rules`: what needs a person, and what makes an alert."""

from typing import Annotated

from fastapi import Path, Query, Request, Response

from fleet.adapters.sql.alert_rows import AlertRow, AlertRows, SubjectRow
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.alert_rules import MEANINGS, RuleTerms, misfit
from fleet.core.permissions import ALERTS_READ, ALERTS_WRITE
from fleet.roles.control.access import Who, milliseconds
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.alert_names import ALERT_RULES, AlertRule
from fleet.wire.control.alerts import Alert, AlertRuleChange, AlertRuleList, AlertRuleTerms, AlertSubject
from fleet.wire.control.shapes import ListPage, time_of, time_or_none

AlertId = Annotated[int, Path(ge=1, lt=2**62)]
OnlyOpen = Annotated[bool, Query(alias="open", description="Only alerts that are open.")]


class AlertRoutes:
    """Shows and closes alerts, and changes their rules; the leader of control opens and closes them."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._database = services, services.database
        routes.add("GET /alerts", self.list, ALERTS_READ)
        routes.add("GET /alerts/{alert}", self.read, ALERTS_READ)
        routes.add("GET /alerts/{alert}/subjects", self.subjects, ALERTS_READ)
        routes.add("POST /alerts/{alert}:acknowledge", self.acknowledge, ALERTS_WRITE, model=Alert)
        routes.add("GET /alert-rules", self.rules, ALERTS_READ)
        routes.add("PATCH /alert-rules", self.change_rule, ALERTS_WRITE, model=AlertRuleTerms)

    async def list(
        self, who: Who, only_open: OnlyOpen = False, limit: Limit = 50, cursor: Cursor = ""
    ) -> ListPage[Alert]:
        """Return alerts, the newest first."""
        noun = f"alerts {only_open}"
        place = self._services.cursors.read(who, noun, cursor)
        before = int(str(place[0])) if place else 2**62
        found = await AlertRows(self._database, who.tenant).page(before, limit + 1, only_open=only_open)
        more = self._services.cursors.write(who, noun, [found[limit - 1].id]) if len(found) > limit else None
        return ListPage(items=[_shape(row) for row in found[:limit]], next=more)

    async def read(self, who: Who, alert: AlertId) -> Alert:
        """Return an alert."""
        return _shape(await _row(AlertRows(self._database, who.tenant), alert))

    async def subjects(
        self, who: Who, alert: AlertId, limit: Limit = 100, cursor: Cursor = ""
    ) -> ListPage[AlertSubject]:
        """Return what is part of an alert: devices, tools or jobs."""
        rows, noun = AlertRows(self._database, who.tenant), f"alert {alert}"
        await _row(rows, alert)
        place = self._services.cursors.read(who, noun, cursor)
        after = (int(str(place[0])), str(place[1])) if place else (-1, "")
        found = await rows.subjects(alert, after, limit + 1)
        last = found[limit - 1] if len(found) > limit else None
        more = None if last is None else self._services.cursors.write(who, noun, [last.mac, last.name])
        return ListPage(items=[_subject(row) for row in found[:limit]], next=more)

    async def acknowledge(self, request: Request, who: Who, alert: AlertId) -> Response:
        """Close an alert. What is part of it opens no other one until it was over once."""
        async with self._services.changes.begin(request) as change:
            rows = AlertRows(change.sql, who.tenant)
            before = await _row(rows, alert)
            if await rows.close(alert, who.actor, milliseconds()):
                await change.audit("alert.acknowledge", f"alert/{alert}", after={"rule": before.rule})
            return change.answer(_shape(await _row(rows, alert)))

    async def rules(self, who: Who) -> AlertRuleList:
        """Return the rules of the tenant."""
        rules = await AlertRows(self._database, who.tenant).rules()
        return AlertRuleList(items=[_terms(rule, rules[rule]) for rule in ALERT_RULES])

    async def change_rule(self, request: Request, who: Who, body: AlertRuleChange) -> Response:
        """Change a rule of the tenant; it counts within seconds. A rule that is off closes its alerts."""
        rule = body.rule
        wrong = misfit(rule, body.thresholds)
        if wrong:
            raise Problem(422, "invalid", wrong)
        async with self._services.changes.begin(request) as change:
            rows = AlertRows(change.sql, who.tenant)
            before = (await rows.rules())[rule]
            enabled = before.enabled if body.enabled is None else body.enabled
            after = RuleTerms(enabled, {**before.thresholds, **body.thresholds})
            await rows.change_rule(rule, after)
            parts = ({"enabled": one.enabled, **one.thresholds} for one in (before, after))
            await change.audit("alert-rule.update", f"alert-rule/{rule}", before=next(parts), after=next(parts))
            return change.answer(_terms(rule, after))


async def _row(rows: AlertRows, alert: int) -> AlertRow:
    row = await rows.read(alert)
    if row is None:
        raise not_found("alert")
    return row


def _shape(row: AlertRow) -> Alert:
    return Alert(
        id=row.id,
        rule=row.rule,
        opened=time_of(row.opened),
        closed=time_or_none(row.closed),
        closed_by=row.closed_by,
        subjects=row.subjects,
        present=row.present,
        text=row.text,
    )


def _subject(row: SubjectRow) -> AlertSubject:
    device = mac_text(row.mac) if row.mac else ""
    return AlertSubject(
        device=device, name=row.name, since=time_of(row.since), over=time_or_none(row.over), text=row.text
    )


def _terms(rule: AlertRule, terms: RuleTerms) -> AlertRuleTerms:
    return AlertRuleTerms(rule=rule, meaning=MEANINGS[rule], enabled=terms.enabled, thresholds=dict(terms.thresholds))
