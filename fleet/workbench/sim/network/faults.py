"""What goes wrong between and inside devices, as data: the knobs of contract 10."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from fleet.ground.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares are of 1, times in seconds; 0 is off. Everything is drawn from the device's seed, so it can be repeated.

    UDP faults work in both directions, and are the simulator's own: no system tool is needed.
    """

    loss: float = 0.0
    """Share of datagrams that are lost."""
    reorder: float = 0.0
    """Share of datagrams that come one or two packets late."""
    duplicate: float = 0.0
    """Share of datagrams that come twice."""
    rebind_at: int = 0
    """NAT rebinding: a new local port before this packet of every session (counted from 1)."""
    rebind_every: int = 0
    """A new local port after every so many packets."""
    forged: float = 0.0
    """Forged datagrams for each one sent: the right ssrc and a likely number, random payload, from another socket."""
    half_open: float = 0.0
    """For so long MQTT's TCP passes nothing on, in either direction, without being closed."""
    half_open_at: float = 5.0
    """Time after power-on at which that begins."""
    late_hello: float = 0.0
    """So much later the answer to a hello is received."""
    second_hello: float = 0.0
    """So long after its first hello the device sends another."""
    broken_json: float = 0.0
    """Share of messages before which one is sent that is no message: cut off, an array, without or with an odd type."""
    tool_errors: float = 0.0
    """Share of tool calls that fail with a text of quotes and line ends, which firmware does not escape."""
    invalid_utf8: float = 0.0
    """Above 0 the name of the Wi-Fi in the bootstrap body is no UTF-8 and has a quote, and the wake text has quotes."""

    @property
    def udp(self) -> bool:
        """Whether datagrams are lost, doubled or delayed."""
        return bool(self.loss or self.reorder or self.duplicate)


_WHOLE = frozenset({"rebind_at", "rebind_every"})
_SHARES = frozenset({"loss", "reorder", "duplicate", "broken_json", "tool_errors"})


def names() -> list[str]:
    """Return the knobs' names."""
    return [field.name for field in fields(Faults)]


def parse(settings: Iterable[str]) -> Faults:
    """Return the faults of settings such as `loss=0.05`; a name alone means 1.

    Raises:
        ConfigError: A name is unknown, or a value is no number or out of its range.
    """
    faults = Faults()
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in names():
            raise ConfigError(f"no fault {name!r}; there are {', '.join(names())}")
        faults = replace(faults, **{name: _number(name, value or "1")})  # type: ignore[arg-type] # as each field wants it
    return faults


def _number(name: str, value: str) -> float | int:
    try:
        number = int(value) if name in _WHOLE else float(value)
    except ValueError as error:
        raise ConfigError(f"fault {name}: {value!r} is no number") from error
    most = 1.0 if name in _SHARES else 86_400.0
    if not 0 <= number <= most:
        raise ConfigError(f"fault {name}: {value} is not between 0 and {most:g}")
    return number
