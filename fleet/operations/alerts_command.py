"""`fleet alerts`: what needs a person, over control."""

from typing import Annotated

import typer

from fleet.client import alerts
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.inputs import checked, read_pair
from fleet.operations.json_output import AsJson, print_json, print_result
from fleet.operations.listing import print_list
from fleet.wire.alert_names import ALERT_RULES, DEVICE_RULES, AlertRule
from fleet.wire.control.alerts import Alert, AlertRuleChange, AlertRuleTerms

app = typer.Typer(help="Alerts: list, show, acknowledge, rules, set.", no_args_is_help=True)

Id = Annotated[int, typer.Argument(min=1, help="Number of the alert.")]
_COLUMNS = ("id", "rule", "state", "opened", "what")


@app.command("list")
@operation
async def list_alerts(
    settings: Settings,
    closed: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the alerts that are open, the newest first."""
    async with open_control(settings) as control:
        call = alerts.listing(only_open=not closed)
        found = [one async for page in control.pages(call) for one in page.items]
    if as_json:
        print_json("alerts", found)
        return
    print_list("alerts", _COLUMNS, [_row(one) for one in found], as_json=False)


@app.command()
@operation
async def show(settings: Settings, alert: Id, as_json: AsJson = False) -> None:
    """Show an alert with its devices, tools or jobs."""
    async with open_control(settings) as control:
        found = await control.send(alerts.read(alert))
        rows = [one async for page in control.pages(alerts.subjects(alert)) for one in page.items]
    if as_json:
        subjects = [one.model_dump(mode="json") for one in rows]
        print_json("alerts", [{**found.model_dump(mode="json"), "subjects": subjects}])
        return
    typer.echo(f"{found.rule}, {_state(found)}, since {found.opened:%Y-%m-%d %H:%M} UTC")
    shown = [(one.device or one.name, one.since, one.over, one.text) for one in rows]
    print_list("subjects", ("subject", "since", "over", "what"), shown, as_json=False)


@app.command()
@operation
async def acknowledge(settings: Settings, alert: Id, as_json: AsJson = False) -> None:
    """Close an alert; what is part of it opens no other one until it was over once."""
    async with open_control(settings) as control:
        found = await control.send(alerts.acknowledge(alert))
    print_result("alerts", [found], f"alert {found.id} is {_state(found)}", as_json=as_json)


@app.command()
@operation
async def rules(settings: Settings, as_json: AsJson = False) -> None:
    """List the rules with their thresholds."""
    async with open_control(settings) as control:
        found = (await control.send(alerts.rules())).items
    if as_json:
        print_json("rules", found)
        return
    rows = [(one.rule, "on" if one.enabled else "off", _thresholds(one), one.meaning) for one in found]
    print_list("rules", ("rule", "state", "thresholds", "meaning"), rows, as_json=False)


@app.command("set")
@operation
async def set_rule(
    settings: Settings,
    rule: Annotated[str, typer.Argument(help=f"One of {', '.join(ALERT_RULES)}.")],
    thresholds: Annotated[list[str] | None, typer.Argument(help="Thresholds as name=number.")] = None,
    enabled: Annotated[bool | None, typer.Option("--on/--off", help="Switch the rule on or off.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change a rule."""
    given = dict(read_pair(text) for text in thresholds or ())
    change = checked(AlertRuleChange, {"rule": _known(rule), "enabled": enabled, "thresholds": given})
    async with open_control(settings) as control:
        found = await control.send(alerts.change_rule(change))
    text = f"{found.rule} is {'on' if found.enabled else 'off'}: {_thresholds(found)}"
    print_result("rules", [found], text, as_json=as_json)


def _known(rule: str) -> AlertRule:
    found = next((one for one in ALERT_RULES if one == rule), None)
    if found is None:
        raise ConfigError(f"there is no rule {visible(rule)}; rules are {', '.join(ALERT_RULES)}")
    return found


def _state(alert: Alert) -> str:
    if alert.closed is None:
        return "open"
    return f"closed by {visible(alert.closed_by)}" if alert.closed_by else "over"


def _row(alert: Alert) -> tuple[int, str, str, str, str]:
    noun = "device" if alert.rule in DEVICE_RULES else "tool" if alert.rule == "tools" else "job"
    many = f"{plural(alert.subjects, noun)}, {alert.present} still: " if alert.subjects > 1 else ""
    return alert.id, alert.rule, _state(alert), f"{alert.opened:%Y-%m-%d %H:%M}", f"{many}{alert.text}"


def _thresholds(terms: AlertRuleTerms) -> str:
    return " ".join(f"{name}={value:g}" for name, value in terms.thresholds.items())
