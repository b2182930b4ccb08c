"""Tables of devices and claims for a terminal."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.table import Column, Table

from fleet.adapters.redis.access.admissions import Admission
from fleet.adapters.redis.access.claims import Claim
from fleet.adapters.redis.access.policy import PolicyState
from fleet.adapters.redis.devices.registry import Entry
from fleet.ground.terminal import cell
from fleet.wire.identity import format_username

_OWNED: Final[Mapping[str, str]] = {
    "first": "first use",
    "kept": "kept",
    "code": "code",
    "mac": "MAC",
    "key": "key",
}


def devices_table(
    entries: Sequence[Entry], admissions: Sequence[Admission], revoked: frozenset[str], state: PolicyState
) -> Table:
    """Return a table of devices: state, owner, password, and how often other clients asked for the MAC."""
    table = Table(
        "device", "state", "board", "firmware", "last start", "connected as", "owner", "password", "others", "time zone"
    )
    for entry, admission in zip(entries, admissions, strict=True):
        device = entry.device
        is_revoked = device.mac in revoked
        row = (
            device.mac,
            "revoked" if is_revoked else "online" if device.online else "offline",
            device.board,
            device.firmware,
            f"{entry.seen:%Y-%m-%d %H:%M}",
            _connected(entry),
            owner(admission),
            password(entry, admission, state),
            str(admission.others or ""),
            admission.timezone,
        )
        table.add_row(*map(cell, row))
    return table


def _connected(entry: Entry) -> str:
    """Return key, policy and generation of a device's last connection; `k1?` if the broker did not report them."""
    if entry.connected is None:
        return f"{entry.key}?" if entry.key else ""
    return format_username(entry.connected).removeprefix("device.")


def claims_table(claims: Sequence[Claim]) -> Table:
    """Return a table of claims: clients that ask for a MAC of another owner."""
    table = Table("device", Column("client", overflow="fold"), "address", "times", "first", "last")
    for claim in claims:
        row = (
            claim.mac,
            claim.client,
            claim.address,
            str(claim.count),
            format_time(claim.first),
            format_time(claim.last),
        )
        table.add_row(*map(cell, row))
    return table


def owner(admission: Admission) -> str:
    """Return how a MAC got its owner; empty if it has none."""
    if admission.unbound:
        return "unbound"
    if not admission.bound:
        return ""
    return _OWNED[admission.how or "code"] + ("" if admission.client else ", not seen yet")


def has_old_password(entry: Entry, admission: Admission, state: PolicyState) -> bool:
    """Whether a device's password must be replaced."""
    if not state.strict and admission.generation < 2:
        return False
    return held_generation(entry) < admission.wanted


def held_generation(entry: Entry) -> int:
    """Return the generation of a device's password: of its last connection, else of its last bootstrap."""
    return entry.connected.generation if entry.connected is not None else entry.given


def password(entry: Entry, admission: Admission, state: PolicyState) -> str:
    """Return whether a device has an old password, and until when it is accepted; empty for a current one."""
    if not has_old_password(entry, admission, state):
        return ""
    until = min((at for at in (admission.due, 0 if held_generation(entry) else state.until) if at), default=0)
    return f"old, until {format_time(until)}" if until else "old"


def format_time(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
