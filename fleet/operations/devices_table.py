"""Tables of devices and claims: columns and rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admission, Admissions
from fleet.adapters.redis.access.claims import Claim
from fleet.adapters.redis.access.policy import PolicyState
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.registry import DeviceRegistry, Entry
from fleet.operations.listing import Value
from fleet.wire.identity import format_username

Rows = Iterable[Sequence[Value]]

_OWNED: Final[Mapping[str, str]] = {
    "first": "first use",
    "kept": "kept",
    "code": "code",
    "mac": "MAC",
    "key": "key",
}


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A MAC that anything is known of; `entry` is None if it did not ask bootstrap within the last 90 days.

    `codes` are those that devices with this MAC show now.
    """

    mac: str
    entry: Entry | None
    admission: Admission
    revoked: bool
    codes: Sequence[str] = ()

    @property
    def state(self) -> str:
        if self.revoked:
            return "revoked"
        if self.entry is None:
            return "waits" if self.codes else "not seen"
        return "online" if self.entry.device.online else "offline"


async def read_devices(store: Store) -> list[ListedDevice]:
    """Return all devices by MAC: those with a recent bootstrap, and others that are bound, wait or are revoked.

    Raises:
        Unavailable: Redis did not answer.
    """
    entries = {entry.device.mac: entry for entry in await DeviceRegistry(store).entries()}
    admissions = await Admissions(store).all()
    revoked = await Revocations(store).read()
    codes: dict[str, list[str]] = {}
    for mac, code in await Activations(store).codes():
        codes.setdefault(mac, []).append(code)
    bound = {mac for mac, admission in admissions.items() if admission.bound}
    return [
        ListedDevice(mac, entries.get(mac), admissions.get(mac, Admission()), mac in revoked, codes.get(mac, ()))
        for mac in sorted(entries.keys() | codes.keys() | bound | revoked)
    ]


def devices_table(devices: Iterable[ListedDevice], state: PolicyState) -> tuple[Sequence[str], Rows]:
    """Return columns and rows of devices: state, owner, password, and how often other clients asked for the MAC."""
    columns = ("device", "state", "board", "firmware", "last_start", "connected_as", "owner")
    return (*columns, "password", "others", "time_zone", "code"), (_row(device, state) for device in devices)


def _row(listed: ListedDevice, state: PolicyState) -> Sequence[Value]:
    entry, admission = listed.entry, listed.admission
    seen = (None,) * 4 if entry is None else (entry.device.board, entry.device.firmware, entry.seen, _connected(entry))
    old = password(entry, admission, state) if entry else ""
    owned = (owner(admission), old, admission.others, admission.timezone, ", ".join(listed.codes))
    return (listed.mac, listed.state, *(None if value == "" else value for value in (*seen, *owned)))


def _connected(entry: Entry) -> str:
    """Return key, policy and generation of a device's last connection; `k1?` if the broker did not report them."""
    if entry.connected is None:
        return f"{entry.key}?" if entry.key else ""
    return format_username(entry.connected).removeprefix("device.")


def claims_table(claims: Sequence[Claim]) -> tuple[Sequence[str], Rows]:
    """Return columns and rows of claims: clients that ask for a MAC of another owner."""
    columns = ("device", "client", "address", "times", "first", "last")
    rows = [(one.mac, one.client, one.address, one.count, _time(one.first), _time(one.last)) for one in claims]
    return columns, rows


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


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
    return f"{_time(at):%Y-%m-%d %H:%M}"
