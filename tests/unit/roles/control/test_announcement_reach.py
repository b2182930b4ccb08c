"""How devices would be told an announcement now."""

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from fleet.adapters.redis.shards.device_tallies import DeviceKind
from fleet.core.job_holds import QUIET
from fleet.roles.control.announcement_reach import NO_WAY, QUIET_TOO_LONG, AnnouncementReach
from fleet.roles.control.device_dry_run import ReadyDevices
from fleet.roles.control.settings import ControlSettings
from fleet.wire.control.announcements import AnnouncementRequest
from fleet.wire.operator_calls import IN_SESSION, OFFLINE

NOON = round(datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp() * 1000)
SETTINGS = cast(
    "ControlSettings",
    SimpleNamespace(http_public=None, public_host=None, http_port=80, https_port=0, tls_cert=None, timezone="UTC"),
)
IDLE = DeviceKind(True, "xiaozhi", "2.5.0", "", "10.0.0.2", session=False, speaks=False, timezone="")
TALKING = IDLE._replace(session=True, speaks=True)


def reach(*, idle: bool = False, **fields: Any) -> AnnouncementReach:
    asked = AnnouncementRequest.model_validate({"text": "Hi", "query": "", **fields})
    return AnnouncementReach(asked, idle, SETTINGS, NOON)


def test_a_device_is_told_by_the_first_way_that_is_allowed_and_open() -> None:
    every = reach()
    assert every.of(TALKING) == ("told", "speech")
    assert every.of(IDLE) == ("told", "notify")
    assert every.of(IDLE._replace(session=True)) == ("told", "notify"), "a session that no edge has"
    for lacking in ({"firmware": "2.4.2"}, {"host": ""}, {"unfetched": "2 2.5.0"}):
        assert every.of(IDLE._replace(**lacking)) == ("told", "alert"), lacking
    assert every.of(IDLE._replace(unfetched="2 2.4.9")) == ("told", "notify"), "of earlier firmware"
    assert reach(ways=["speech"]).of(IDLE) == ("skipped", NO_WAY)
    assert reach(ways=["speech", "wake"]).of(IDLE) == ("told", "wake")


def test_a_device_that_is_left_alone_waits_unless_the_announcement_is_over_before() -> None:
    assert reach().of(IDLE._replace(online=False)) == ("waiting", OFFLINE)
    assert reach(idle=True, ways=["notify"]).of(TALKING) == ("waiting", IN_SESSION)
    assert reach(quiet="11:00-12:30").of(IDLE) == ("waiting", QUIET)
    assert reach(quiet="11:00-13:00").of(IDLE) == ("skipped", QUIET_TOO_LONG), "it expires after an hour"
    assert reach(quiet="11:00-13:00").of(IDLE._replace(timezone="Asia/Shanghai")) == ("told", "notify")


def test_a_sample_stands_for_all_and_no_device_is_lost_by_rounding() -> None:
    found = reach().count(ReadyDevices(Counter({IDLE: 1, TALKING: 1, IDLE._replace(firmware="2.4"): 1}), 100))
    assert sorted(found.values()) == [33, 33, 34]
    assert reach().count(ReadyDevices(Counter(), 0)) == {}
