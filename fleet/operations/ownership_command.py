"""`fleet devices`: whose a device is, and which of its passwords count."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import REFUSED_SECONDS, Admissions
from fleet.adapters.redis.access.claims import Claim, Claims
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.access.renewals import Renewals
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import open_store, read_mac, run
from fleet.operations.devices_table import claims_table, format_time, held_generation, is_old
from fleet.wire.topics import canonical_mac

app = typer.Typer()

Mac = Annotated[str, typer.Argument(help="MAC of the device, in any usual spelling.")]
Now = Annotated[bool, typer.Option("--now", help="Refuse earlier passwords at once, instead of asking for a restart.")]
Who = Annotated[str, typer.Argument(help="The claim, by the beginning of its client; not needed where there is one.")]

SWITCH = "the device must be switched off and on"
_MOST_NAMED = 20


@app.command()
def bind(who: Annotated[str, typer.Argument(help="The code that a device shows, or a MAC.")], now: Now = False) -> None:
    """Make the device that shows a code the owner of its MAC; by MAC the first that comes."""

    async def work(settings: Settings) -> int:
        async with open_store(settings) as store:
            mac, client, serial = await _find(store, who)
            return await _bind(store, settings, mac, client, serial, now=now)

    run(work)


@app.command()
def unbind(mac: Mac) -> None:
    """Take a device's admission away, at once: it must be activated anew at its next start, except under `open`.

    Under `closed` a device whose serial number is known does that by itself.
    """

    async def work(settings: Settings) -> int:
        name = read_mac(mac)
        async with open_store(settings) as store:
            had, generation = await Admissions(store).unbind(name)
            await Revocations(store).require(name, generation)
        typer.echo(f"{name} {'is bound no more' if had else 'was not bound'}; its passwords are refused, {SWITCH}")
        return 0

    run(work)


@app.command()
def claims(mac: Annotated[str, typer.Argument(help="MAC of a device; without it all.")] = "") -> None:
    """Show who asks with a MAC that is another's: `accept` or `refuse` them."""

    async def work(settings: Settings) -> int:
        async with open_store(settings) as store:
            found = await (Claims(store).of(read_mac(mac)) if mac else Claims(store).all())
        Console(width=None if Console().is_terminal else 160).print(claims_table(found))
        return 0

    run(work)


@app.command()
def accept(mac: Mac, client: Who = "", now: Now = False) -> None:
    """Make the one who claims a MAC its owner; passwords of the earlier owner are replaced."""

    async def work(settings: Settings) -> int:
        async with open_store(settings) as store:
            claim = await _claim(store, read_mac(mac), client)
            return await _bind(store, settings, claim.mac, claim.client, "", now=now)

    run(work)


@app.command()
def refuse(mac: Mac, client: Who = "") -> None:
    """Forget a claim, and give that client no code for 30 days."""

    async def work(settings: Settings) -> int:
        async with open_store(settings) as store:
            claim = await _claim(store, read_mac(mac), client)
            await Claims(store).refuse(claim)
        typer.echo(f"{visible(claim.client)} gets nothing with {claim.mac} for {REFUSED_SECONDS // 86_400} days")
        return 0

    run(work)


@app.command()
def renew(mac: Annotated[str, typer.Argument(help="MAC of a device; without it all.")] = "", now: Now = False) -> None:
    """Replace a device's password; without a MAC show who still has an old one, and ask those for a restart again.

    Exit code 1: some devices still have an old password.
    """

    async def work(settings: Settings) -> int:
        async with open_store(settings) as store:
            if mac:
                return await _renew(store, settings, read_mac(mac), now=now)
            return await _renew_all(store, now=now)

    run(work)


async def _bind(store: Store, settings: Settings, mac: str, client: str, serial: str, *, now: bool) -> int:
    """Make a client the owner of a MAC, and say what becomes of earlier passwords."""
    until = _deadline(settings, now=now)
    if client:
        await Claims(store).lift_refusal(mac, client)
    generation = await Admissions(store).bind(mac, client, serial, until=until)
    await Claims(store).settle(mac, client)
    typer.echo(f"{mac} is bound")
    if generation is not None:
        await _replace_password(store, mac, generation, until)
    return 0


async def _renew(store: Store, settings: Settings, mac: str, *, now: bool) -> int:
    if not (await Admissions(store).read(mac)).bound:
        raise ConfigError(f"{mac} has no owner yet: it gets another password at its next start")
    until = _deadline(settings, now=now)
    await _replace_password(store, mac, await Admissions(store).renew(mac, until), until)
    await Renewals(store).ask_now([] if now else [mac])
    return 0


async def _renew_all(store: Store, *, now: bool) -> int:
    state = await PolicyStore(store).read()
    entries = await DeviceRegistry(store).entries()
    admissions = await Admissions(store).read_many([entry.device.mac for entry in entries])
    both = [
        (one, admission) for one, admission in zip(entries, admissions, strict=True) if is_old(one, admission, state)
    ]
    if now:
        for one, admission in both:
            if held_generation(one):
                await Revocations(store).require(one.device.mac, admission.wanted)
        if state.strict:
            await Revocations(store).require_all(1)
            await PolicyStore(store).close()
        typer.echo(f"{len(both)} old passwords are refused: those devices must be switched off and on")
        return 0
    online = [one.device.mac for one, _ in both if one.device.online]
    await Renewals(store).ask_now(online)
    typer.echo(f"{len(both)} of {len(entries)} devices have an old password, {len(online)} are online")
    for one, admission in both[:_MOST_NAMED]:
        until = admission.due or state.until
        counts = f"counts until {format_time(until)}" if until else ""
        typer.echo(f"{one.device.mac}  {'online' if one.device.online else 'offline'}  {counts}".rstrip())
    return 1 if both else 0


async def _replace_password(store: Store, mac: str, generation: int, until: int) -> None:
    if not until:
        await Revocations(store).require(mac, generation)
        typer.echo(f"earlier passwords of {mac} are refused: {SWITCH}")
        return
    typer.echo(
        f"an earlier password of {mac} counts until the device has a new one, at the latest {format_time(until)}; "
        "it is asked to restart when it is idle (--now refuses it at once)"
    )


def _deadline(settings: Settings, *, now: bool) -> int:
    """Return until when earlier passwords count, in seconds since 1970; 0 for now."""
    return 0 if now else int(datetime.now(UTC).timestamp() + settings.renewal_days * 86_400)


async def _claim(store: Store, mac: str, client: str) -> Claim:
    claims = await Claims(store).of(mac)
    found = [claim for claim in claims if claim.client.startswith(client)]
    if len(found) > 1:
        # One may be the beginning of another.
        found = [claim for claim in found if claim.client == client] or found
    if len(found) != 1:
        names = ", ".join(visible(claim.client) for claim in found)
        raise ConfigError(f"{mac} has several claims, say which: {names}" if found else f"{mac} has no such claim")
    return found[0]


async def _find(store: Store, who: str) -> tuple[str, str, str]:
    """Return MAC, Client-Id and serial number of who is to be bound."""
    mac = canonical_mac(who)
    if mac is not None:
        return mac, "", ""
    found = await Activations(store).claim(who.strip().replace(" ", ""))
    if found is None:
        raise ConfigError(f"no device shows the code {who} now")
    return found
