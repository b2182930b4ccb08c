"""The connections that are no client, and the reasons that are counted."""

import re
from pathlib import Path

from fleet.ground.metrics import http
from fleet.ground.metrics.definition import slug
from fleet.roles.gateway.port.connection_limits import ClientLimits, ConnectionLimits

ROOT = Path(__file__).parents[5] / "fleet"


class Stranger:
    def __init__(self, address: str = "192.0.2.1") -> None:
        self.address = address
        self.ended: list[str] = []

    def end(self, reason: str) -> None:
        self.ended.append(reason)


def test_for_one_more_the_oldest_is_ended() -> None:
    limits = ConnectionLimits(ClientLimits(passing=3))
    strangers = [Stranger() for _ in range(5)]
    for stranger in strangers:
        limits.enter(stranger)
        limits.enter(stranger)
    assert [stranger.ended for stranger in strangers] == [["crowded out"]] * 2 + [[]] * 3
    assert limits.passing == 3


def test_who_opens_many_connections_crowds_out_its_own() -> None:
    limits = ConnectionLimits(ClientLimits(passing=3))
    slow, crowding = Stranger("192.0.2.1"), [Stranger(f"2001:db8::{number}") for number in range(5)]
    for stranger in (slow, *crowding):
        limits.enter(stranger)
    assert slow.ended == []
    assert [stranger.ended for stranger in crowding] == [["crowded out"]] * 3 + [[]] * 2


def test_who_became_a_client_is_not_crowded_out() -> None:
    limits = ConnectionLimits(ClientLimits(passing=1))
    client, stranger = Stranger(), Stranger()
    limits.enter(client)
    limits.leave(client)
    limits.leave(client)
    limits.enter(stranger)
    assert (client.ended, stranger.ended, limits.passing) == ([], [], 1)


def test_every_reason_is_known_and_every_known_one_is_used() -> None:
    places = [*(ROOT / "roles/gateway").rglob("*.py"), ROOT / "adapters/net/tls/listener.py"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in places)
    forms = "|".join(
        (
            r'(?:limits\.counts\[|self\._counts\[|(?:self|socket|oldest)\.end\()"([^"]+)"',
            r'(?:_deadlines\.set\(|_turn_away\(connection, )"([^"]+)"',
            r'return "(too many[^"]+)"',
            r'return (?:None if .*? else )?"(malformed[^"]+|silent)"',
            r'CloseCode\.\w+: "([^"]+)"',
        )
    )
    written = {slug(next(filter(None, found))) for found in re.findall(forms, text)}
    assert written == set(http.GATEWAY)
