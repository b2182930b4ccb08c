"""Why one device is silent: each step from bootstrap to its last answer. The first failed step is the reason."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.view import DeviceView, read_device_view
from fleet.core.finding import Finding, ok, problem, skipped, warning
from fleet.ground.terminal import plural
from fleet.roles.control.doctor.device_audio import examine_audio
from fleet.roles.control.doctor.device_firmware import examine_firmware

_HANG_UP_SECONDS = 5
_NO_PLACE: Final = (
    "Too many MACs asked bootstrap and never connected (log `no place for a new device`). The device asks again by "
    "itself; to admit it at once, run fleet devices bind MAC"
)
_BOOTSTRAP_ADVICE: Final = {
    "revoked": "To admit it again, run fleet devices unrevoke MAC",
    "not on the list": "FLEET_ACTIVATION is closed: run `fleet devices bind MAC`, or add the device to "
    "FLEET_SERIALS_FILE",
    "no place": _NO_PLACE,
    "no place for its address": _NO_PLACE,
    "not bound": "The device shows a code: run fleet devices bind CODE (or its MAC)",
}
_HELLO_ADVICE: Final = {
    "no edge is ready": "Start `fleet edge`; `fleet doctor --only roles` shows all edges",
    "no address for the audio is known": "Set FLEET_PUBLIC_HOST for the workers, or FLEET_UDP_PUBLIC for the edges",
    "too many hellos": "The device repeats its hello too often: see its log, and FLEET_RATE_HELLOS",
    "the device is not admitted": "Remove the device from FLEET_REFUSED_DEVICES",
}


@dataclass(frozen=True, slots=True)
class SiteTerms:
    """What the site demands of devices: its policy, and the keys of valid passwords, none if they are unknown."""

    policy: str
    keys: Collection[str] = ()


async def examine_device(store: Store, mac: str, terms: SiteTerms) -> list[Finding]:
    """Return the findings about a device, from its first request to its last answer.

    Raises:
        Unavailable: Redis did not answer.
    """
    return list(judge_device(await read_device_view(store, mac), terms, datetime.now(UTC)))


def judge_device(known: DeviceView, terms: SiteTerms, now: datetime) -> Iterator[Finding]:
    """Yield a finding for each step of a device; `now` is this machine's clock."""

    def when(at: int) -> str:
        return describe_time(at, now)

    yield from _admission(known, terms)
    yield _bootstrap(known, when)
    yield from examine_firmware(known, now.timestamp())
    yield from _key(known, terms)
    if not known.record.get("ep"):
        yield _never_connected(known)
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


def _admission(known: DeviceView, terms: SiteTerms) -> Iterator[Finding]:
    if known.revoked:
        yield problem("device.revoked", "the device is revoked", f"Run fleet devices unrevoke {known.mac}", case="yes")
    if _waits(known, terms):
        advice = f"Run fleet devices bind {known.mac}, or use the code that the device shows"
        message = f"the device is not bound, and FLEET_ACTIVATION is {terms.policy}"
        yield problem("device.bound", message, advice, case="no")


def _waits(known: DeviceView, terms: SiteTerms) -> bool:
    """Whether a device waits for an operator, under the policy of these terms."""
    if terms.policy == "open" or known.admission.bound:
        return False
    # A device that was connected before the policy began stays admitted. Under `first` a new one needs no operator.
    return known.admission.unbound or (terms.policy != "first" and not known.record.get("ep"))


def _bootstrap(known: DeviceView, when: Callable[[int], str]) -> Finding:
    refusal = known.refusal
    if refusal is not None and refusal.at > (known.bootstrap or 0):
        advice = _BOOTSTRAP_ADVICE.get(refusal.words, "See the api's log for the reason").replace("MAC", known.mac)
        return problem(
            "device.bootstrap", f"bootstrap refused it {when(refusal.at)}: {refusal.words}", advice, case="refused"
        )
    if known.bootstrap is None:
        return problem(
            "device.bootstrap",
            "the device has not asked bootstrap in the last 90 days",
            "Check the MAC. Check that the device has this server's URL (…/xiaozhi/ota/), and that its network reaches "
            "it: run `fleet doctor --ota URL` in that network",
            case="never",
        )
    host = known.record.get("host", "")
    where = f", at {host}" if host else ""
    return ok(
        "device.bootstrap", f"it asked bootstrap {when(known.bootstrap)}{where}; {_describe(known)}", case="asked"
    )


def _describe(known: DeviceView) -> str:
    return f"board {known.record.get('board') or 'unknown'}, firmware {known.record.get('fw') or 'unknown'}"


def _key(known: DeviceView, terms: SiteTerms) -> Iterator[Finding]:
    given = known.record.get("kid")
    if given and terms.keys and given not in terms.keys:
        advice = (
            "Switch the device off and on; it gets a new password from bootstrap. Next time, retire keys with "
            "`fleet keys rotate`"
        )
        yield problem(
            "device.key", f"its password is made with the key {given}, which is no longer valid", advice, case="retired"
        )


def _never_connected(known: DeviceView) -> Finding:
    if known.bootstrap is None:
        return skipped("device.presence", "the device was never connected", case="none")
    return problem(
        "device.presence",
        "the device got credentials, but never connected to the broker",
        "Check that the address from bootstrap (FLEET_MQTT_PUBLIC, else FLEET_PUBLIC_HOST) leads to the broker from "
        "the device's network. Port 8883 needs a public certificate. `fleet doctor` tests this (broker.door, "
        "broker.presence)",
        case="never",
    )


def _presence(known: DeviceView, when: Callable[[int], str]) -> Finding:
    since = f" since {when(known.at('presence'))}" if known.at("presence") else ""
    if known.record.get("on") == "1":
        return ok("device.presence", f"connected{since}", case="online")
    bye = known.traces.get("goodbye")
    if bye is not None and bye.words == "device" and abs(known.at("presence") - bye.at) <= _HANG_UP_SECONDS:
        message = f"not connected{since}: it hung up and disconnected, as py-xiaozhi and `fleet sim` do"
        return ok("device.presence", message, case="hung-up")
    advice = (
        "The device is switched off, has no network, or cannot reconnect: look at its screen, and run `fleet doctor`"
    )
    return problem("device.presence", f"not connected{since}", advice, case="offline")


def _tools(known: DeviceView) -> Finding:
    if known.tools:
        fresh = known.record.get("tep") == known.record.get("ep")
        return ok(
            "device.tools",
            f"{plural(known.tools, 'tool')}{'' if fresh else ', from an earlier connection'}",
            case="known",
        )
    return warning(
        "device.tools",
        "no tools of the device are known",
        "The device can talk, but does nothing. Old firmware has no tools; with newer firmware, see its log",
        case="none",
    )


def _hello(known: DeviceView, when: Callable[[int], str]) -> Iterator[Finding]:
    hello, refused = known.at("hello"), known.traces.get("refused")
    if refused is not None and refused.at >= hello:
        advice = _HELLO_ADVICE.get(refused.words, "See the worker's log, and run `fleet doctor` for the whole site")
        yield problem(
            "device.hello", f"its hello was refused {when(refused.at)}: {refused.words}", advice, case="refused"
        )
    elif not hello:
        advice = (
            "Press its button or say its wake word. If the device then reports a time-out, its messages do not arrive: "
            "run `fleet doctor` (broker.qos, roles.workers)"
        )
        yield problem(
            "device.hello", "the device never sent a hello, so no user has talked to it yet", advice, case="never"
        )
    else:
        bye = known.traces.get("goodbye")
        over = f"; the session ended {when(bye.at)} ({bye.words or 'unknown'})" if bye and not known.session else ""
        yield ok("device.hello", f"its hello was answered {when(hello)}{over}", case="answered")


def _edge(known: DeviceView) -> Iterator[Finding]:
    edge = known.session.get("edge")
    if edge and not known.edge_lives:
        yield problem(
            "device.edge",
            f"the edge {edge} of its session has ended",
            "A worker ends the session within seconds. If it does not, restart a worker",
            case="ended",
        )
    elif edge:
        yield ok("device.edge", f"a session is open on edge {edge}", case="open")
    else:
        yield skipped("device.edge", "no session is open", case="none")
