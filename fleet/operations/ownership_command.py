"""`fleet devices`: manages the owners of devices and the generations of their passwords."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from fleet.adapters.redis.access.admissions import REFUSED_SECONDS, Admissions
from fleet.adapters.redis.access.claims import Claim, Claims
from fleet.adapters.redis.access.decisions import Asker, Decisions
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.access.renewals import Renewals
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.client import devices
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import Mac, open_store, operation, read_mac
from fleet.operations.control_access import Direct, find_control
from fleet.operations.decision_output import print_outcome, to_claim
from fleet.operations.devices_table import claims_table, format_time, has_old_password, held_generation
from fleet.operations.direct_audit import audit_direct
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list
from fleet.wire.control.devices import DecisionOutcome
from fleet.wire.topics import canonical_mac

app = typer.Typer()

MacOrAll = Annotated[
    str, typer.Argument(help="MAC of a device, with colons, hyphens or no separators; empty: all devices.")
]
Now = Annotated[
    bool, typer.Option("--now", help="Refuse earlier passwords at once; do not wait until the device has restarted.")
]
Client = Annotated[
    str, typer.Argument(help="First characters of the claim's client id; not needed if there is only one claim.")
]

POWER_CYCLE = "the device must be switched off and on"
_MOST_NAMED = 20
CODE_DIGITS = 6


@app.command()
@operation
async def bind(
    settings: Settings,
    who: Annotated[str, typer.Argument(help="The six digits that a device shows, or a MAC.")],
    now: Now = False,
    direct: Direct = False,
    as_json: AsJson = False,
) -> None:
    """Bind a device to its MAC: the device that shows a code or, with a MAC, the first client that asks for it."""
    async with find_control(settings, direct=direct) as control:
        if control is not None:
            mac = canonical_mac(who)
            call = devices.bind(mac, now=now) if mac else devices.bind_code(_read_code(who), now=now)
            outcome = await control.send(call)
        else:
            async with open_store(settings) as store:
                outcome = await _bind(store, settings, await _resolve(store, who), now=now)
    print_outcome(outcome, "is bound", as_json=as_json)


@app.command()
@operation
async def unbind(settings: Settings, mac: Mac, direct: Direct = False, as_json: AsJson = False) -> None:
    """Remove the owner of a device and refuse its passwords at once. The device must be activated at its next start.

    Under the policy `open` it needs no activation. Under `closed` a device with a known serial number activates itself.
    """
    name = read_mac(mac)
    async with find_control(settings, direct=direct) as control:
        if control is not None:
            outcome = await control.send(devices.decide(name, "unbind"))
        else:
            await audit_direct(settings, "device.unbind", name)
            async with open_store(settings) as store:
                had = await Decisions(store).unbind(name)
            outcome = DecisionOutcome(mac=name, changed=had, note=POWER_CYCLE)
    state = "is no longer bound" if outcome.changed else "was not bound"
    print_outcome(outcome, f"{state}; its passwords are refused", as_json=as_json)


@app.command()
@operation
async def claims(settings: Settings, mac: MacOrAll = "", as_json: AsJson = False, direct: Direct = False) -> None:
    """List claims: clients that ask for a MAC of another owner. Use `accept` or `refuse` to decide."""
    name = read_mac(mac) if mac else ""
    async with find_control(settings, direct=direct) as control:
        if control is not None:
            found = [to_claim(one) for one in (await control.send(devices.claims(name))).items]
        else:
            async with open_store(settings) as store:
                found = await (Claims(store).of(name) if name else Claims(store).all())
    print_list("claims", *claims_table(found), as_json=as_json)


@app.command()
@operation
async def accept(
    settings: Settings,
    mac: Mac,
    client: Client = "",
    now: Now = False,
    direct: Direct = False,
    as_json: AsJson = False,
) -> None:
    """Accept a claim: its client becomes the owner of the MAC. The passwords of the earlier owner are replaced."""
    async with find_control(settings, direct=direct) as control:
        if control is not None:
            outcome = await control.send(devices.accept(read_mac(mac), client, now=now))
        else:
            async with open_store(settings) as store:
                claim = await _claim(store, read_mac(mac), client)
                outcome = await _bind(store, settings, Asker(claim.mac, claim.client), now=now)
    print_outcome(outcome, "is bound", as_json=as_json)


@app.command()
@operation
async def refuse(
    settings: Settings, mac: Mac, client: Client = "", direct: Direct = False, as_json: AsJson = False
) -> None:
    """Refuse a claim: delete it, and give its client no code for 30 days."""
    name, days = read_mac(mac), plural(REFUSED_SECONDS // 86_400, "day")
    async with find_control(settings, direct=direct) as control:
        if control is not None:
            outcome = await control.send(devices.refuse(name, client))
            text = f"the claim of {name} is refused for {days}"
        else:
            async with open_store(settings) as store:
                claim = await _claim(store, name, client)
                await audit_direct(settings, "device.refuse", name, {"client": claim.client})
                await Decisions(store).refuse(claim)
            outcome = DecisionOutcome(mac=name, changed=True)
            text = f"{visible(claim.client)} gets no code for {name} for {days}"
    print_result("devices", [outcome], text, as_json=as_json)


@app.command()
@operation
async def renew(settings: Settings, mac: MacOrAll = "", now: Now = False, as_json: AsJson = False) -> int:
    """Replace a device's password. Without a MAC, list the devices with an old password and ask them to restart.

    Exit code 1: some devices still have an old password.
    """
    async with open_store(settings) as store:
        if mac:
            return await _renew(store, settings, read_mac(mac), now=now, as_json=as_json)
        return await _renew_all(store, now=now, as_json=as_json)


async def _bind(store: Store, settings: Settings, who: Asker, *, now: bool) -> DecisionOutcome:
    """Make a client the owner of a MAC; the note says what happens to earlier passwords."""
    until = _deadline(settings, now=now)
    await audit_direct(settings, "device.bind", who.mac, {"client": who.client})
    generation = await Decisions(store).bind(who, until)
    note = "" if generation is None else _password_change(who.mac, until)
    return DecisionOutcome(mac=who.mac, changed=True, note=note)


async def _renew(store: Store, settings: Settings, mac: str, *, now: bool, as_json: bool) -> int:
    if not (await Admissions(store).read(mac)).bound:
        raise ConfigError(f"{mac} has no owner yet: it gets a new password at its next start")
    until = _deadline(settings, now=now)
    await audit_direct(settings, "device.renew", mac, {"now": now})
    generation = await Admissions(store).renew(mac, until)
    if not until:
        await Revocations(store).require(mac, generation)
    await Renewals(store).ask_now([] if now else [mac])
    note = _password_change(mac, until)
    print_result("devices", [DecisionOutcome(mac=mac, changed=True, note=note)], note, as_json=as_json)
    return 0


async def _renew_all(store: Store, *, now: bool, as_json: bool) -> int:
    state = await PolicyStore(store).read()
    entries = await DeviceRegistry(store).entries()
    admissions = await Admissions(store).read_many([entry.device.mac for entry in entries])
    pairs = zip(entries, admissions, strict=True)
    old = [(entry, admission) for entry, admission in pairs if has_old_password(entry, admission, state)]
    online = [entry.device.mac for entry, _ in old if entry.device.online]
    if now:
        for entry, admission in old:
            if held_generation(entry):
                await Revocations(store).require(entry.device.mac, admission.wanted)
        if state.strict:
            await Revocations(store).require_all(1)
            await PolicyStore(store).close()
        text = f"old passwords that are refused: {len(old)}; those devices must be switched off and on"
    else:
        await Renewals(store).ask_now(online)
        text = f"devices with an old password: {len(old)} of {len(entries)}, online: {len(online)}"
    found = [_old_password(entry.device, 0 if now else admission.due or state.until) for entry, admission in old]
    lines = [] if now else [_line(**one) for one in found[:_MOST_NAMED]]
    print_result("devices", found, "\n".join([text, *lines]), as_json=as_json)
    return 1 if old and not now else 0


def _old_password(device: DeviceRecord, until: int) -> dict[str, Any]:
    end = datetime.fromtimestamp(until, UTC) if until else None
    return {"mac": device.mac, "online": device.online, "valid_until": end}


def _line(mac: str, online: bool, valid_until: datetime | None) -> str:
    valid = f"valid until {valid_until:%Y-%m-%d %H:%M}" if valid_until else ""
    return f"{mac}  {'online' if online else 'offline'}  {valid}".rstrip()


def _password_change(mac: str, until: int) -> str:
    if not until:
        return f"earlier passwords of {mac} are refused: {POWER_CYCLE}"
    return (
        f"an earlier password of {mac} is valid until the device has a new one, at most until {format_time(until)}; "
        "the server asks the device to restart when it is idle (--now refuses the password at once)"
    )


def _deadline(settings: Settings, *, now: bool) -> int:
    """Return until when earlier passwords are valid, in seconds since 1970; 0: they are refused now."""
    return 0 if now else int(datetime.now(UTC).timestamp() + settings.renewal_days * 86_400)


async def _claim(store: Store, mac: str, client: str) -> Claim:
    found = await Decisions(store).claims_of(mac, client)
    if len(found) != 1:
        names = ", ".join(visible(claim.client) for claim in found)
        raise ConfigError(f"{mac} has several claims, name one: {names}" if found else f"{mac} has no such claim")
    return found[0]


async def _resolve(store: Store, who: str) -> Asker:
    """Return a device by its code, or by its MAC."""
    mac = canonical_mac(who)
    if mac is not None:
        return Asker(mac)
    found = await Decisions(store).by_code(who)
    if found is None:
        raise ConfigError(f"no device shows the code {who} now")
    return found


def _read_code(text: str) -> str:
    digits = text.replace(" ", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) == CODE_DIGITS):
        raise ConfigError(f"{visible(text)} is neither a MAC nor a code of {CODE_DIGITS} digits")
    return digits
