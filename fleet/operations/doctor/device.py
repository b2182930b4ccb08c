"""Why one device is silent: each step from bootstrap to its last answer. The first failed step is the reason."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.view import DeviceView, read_device_view
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.doctor.device_audio import examine_audio
from fleet.operations.doctor.finding import Finding, ok, problem, skipped, warning
from fleet.run.resources import read_keys

_CROWD: Final = (
    "Too many MACs asked that never connected (log `no place for a new device`). It asks again by itself; "
    "fleet devices bind MAC lets it in at once"
)
_TURNED: Final = {
    "revoked": "Let it in again: fleet devices unrevoke MAC",
    "not on the list": "FLEET_ACTIVATION=closed: bind it with `fleet devices bind MAC`, or add it to "
    "FLEET_SERIALS_FILE",
    "no place": _CROWD,
    "no place for its address": _CROWD,
    "not bound": "It shows a code: fleet devices bind CODE (or its MAC)",
}
_REFUSED: Final = {
    "no edge is ready": "Start `fleet edge`; `fleet doctor --only roles` shows how many there are",
    "no address for the audio is known": "Set FLEET_PUBLIC_HOST for the workers, or FLEET_UDP_PUBLIC for the edges",
    "too many hellos": "Something makes it say hello again and again: its log, and FLEET_RATE_HELLOS",
    "the device is not admitted": "FLEET_REFUSED_DEVICES names it",
}


async def examine_device(store: Store, mac: str, settings: Settings) -> list[Finding]:
    """Return what is known of a device, from its first request to its last answer.

    Raises:
        Unavailable: Redis did not answer.
    """
    return list(judge_device(await read_device_view(store, mac), settings, datetime.now(UTC)))


def judge_device(known: DeviceView, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Yield a finding for each step of a device; `now` is this machine's clock."""

    def when(at: int) -> str:
        return describe_time(at, now)

    yield from _admission(known, settings)
    yield _bootstrap(known, when)
    yield from _key(known, settings)
    if not known.record.get("ep"):
        yield _never_came(known)
        return
    yield _presence(known, when)
    yield _tools(known)
    yield from _hello(known, when)
    if known.at("hello"):
        yield from _edge(known)
        yield from examine_audio(known, when, now)


def describe_time(at: int, now: datetime) -> str:
    """Return a time and how long ago it was."""
    moment = datetime.fromtimestamp(at, UTC)
    seconds = max((now - moment).total_seconds(), 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{moment:%Y-%m-%d %H:%M:%S} UTC ({seconds / length:.0f} {unit} ago)"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC ({seconds:.0f} s ago)"


def _admission(known: DeviceView, settings: Settings) -> Iterator[Finding]:
    if known.revoked:
        yield problem("device.revoked", "it is revoked", f"fleet devices unrevoke {known.mac}")
    if _waits(known, settings):
        advice = f"fleet devices bind {known.mac}, or with the code that it shows"
        yield problem("device.bound", f"it is not bound, and FLEET_ACTIVATION is {settings.activation}", advice)


def _waits(known: DeviceView, settings: Settings) -> bool:
    """Whether a device waits for an operator, under the policy of these settings."""
    if settings.activation == "open" or known.admission.bound:
        return False
    # Whoever was connected before the policy began is kept, and under `first` a newcomer needs nobody.
    return known.admission.unbound or (settings.activation != "first" and not known.record.get("ep"))


def _bootstrap(known: DeviceView, when: Callable[[int], str]) -> Finding:
    away = known.refusal
    if away is not None and away.at > (known.bootstrap or 0):
        advice = _TURNED.get(away.words, "The api's log says why").replace("MAC", known.mac)
        return problem("device.bootstrap", f"refused {when(away.at)}: {away.words}", advice)
    if known.bootstrap is None:
        return problem(
            "device.bootstrap",
            "it has not asked bootstrap in 90 days",
            "Is the MAC right? Is this server's URL (…/xiaozhi/ota/) set in the device, and does its network "
            "lead there? "
            "`fleet doctor --ota URL` tries it from where you are",
        )
    host = known.record.get("host", "")
    return ok("device.bootstrap", f"{when(known.bootstrap)}{f', at {host}' if host else ''}; {_describe(known)}")


def _describe(known: DeviceView) -> str:
    return f"board {known.record.get('board') or 'unknown'}, firmware {known.record.get('fw') or 'unknown'}"


def _key(known: DeviceView, settings: Settings) -> Iterator[Finding]:
    given = known.record.get("kid")
    try:
        ids = read_keys(settings).ids if settings.keys or settings.keys_file else ()
    except ConfigError:
        return
    if given and ids and given not in ids:
        advice = "Switch it off and on: it gets another one at bootstrap. Retire keys with `fleet keys rotate`"
        yield problem("device.key", f"its password was made with the key {given}, which is no longer valid", advice)


def _never_came(known: DeviceView) -> Finding:
    if known.bootstrap is None:
        return skipped("device.presence", "it was never connected")
    return problem(
        "device.presence",
        "it was given credentials, but never came to the broker",
        "Does the endpoint that it was told (FLEET_MQTT_PUBLIC, else FLEET_PUBLIC_HOST) lead to the broker from its "
        "network? On port 8883 it needs a public certificate. `fleet doctor` tries it (broker.door, broker.presence)",
    )


def _presence(known: DeviceView, when: Callable[[int], str]) -> Finding:
    since = when(known.at("presence")) if known.at("presence") else "at an unknown time"
    if known.record.get("on") == "1":
        return ok("device.presence", f"connected since {since}")
    advice = "It is switched off, has no network, or cannot come back: look at its screen, and try its endpoint"
    return problem("device.presence", f"not connected since {since}", advice)


def _tools(known: DeviceView) -> Finding:
    if known.tools:
        fresh = known.record.get("tep") == known.record.get("ep")
        return ok("device.tools", f"{known.tools} tools{'' if fresh else ', of an earlier connection'}")
    return warning(
        "device.tools", "no tools are known", "It talks, but does nothing. Old firmware has none; else its log"
    )


def _hello(known: DeviceView, when: Callable[[int], str]) -> Iterator[Finding]:
    said, refused = known.at("hello"), known.traces.get("refused")
    if refused is not None and refused.at >= said:
        advice = _REFUSED.get(refused.words, "The worker's log says more; `fleet doctor` looks at the site")
        yield problem("device.hello", f"refused {when(refused.at)}: {refused.words}", advice)
    elif not said:
        advice = (
            "Press its button or say its wake word. If it then says that nobody answers, its messages do not arrive: "
            "`fleet doctor` (broker.qos, roles.workers)"
        )
        yield problem("device.hello", "it never said hello: nobody has begun to talk to it", advice)
    else:
        bye = known.traces.get("goodbye")
        over = f"; ended {when(bye.at)} ({bye.words or 'unknown'})" if bye and not known.session else ""
        yield ok("device.hello", f"answered {when(said)}{over}")


def _edge(known: DeviceView) -> Iterator[Finding]:
    edge = known.session.get("edge")
    if edge and not known.edge_lives:
        yield problem(
            "device.edge", f"its edge {edge} is no more", "It begins anew within seconds; if not, restart a worker"
        )
    elif edge:
        yield ok("device.edge", f"a conversation is open, on edge {edge}")
    else:
        yield skipped("device.edge", "no conversation is open")
