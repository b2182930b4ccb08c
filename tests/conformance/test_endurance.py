"""Conversations over a bad network; `fleet endurance` holds as many as one likes."""

import pytest

from fleet.workbench.conformance.command import STOCK
from fleet.workbench.conformance.endurance import REBIND_AT, endure
from fleet.workbench.conformance.own_server import own_server
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import find_profile

pytestmark = pytest.mark.conformance

BAD = Faults(loss=0.05, reorder=0.02, rebind_at=REBIND_AT)


@pytest.mark.parametrize("conversations", [pytest.param(5), pytest.param(100, marks=pytest.mark.slow)])
async def test_every_conversation_is_whole_although_packets_are_lost_and_addresses_change(conversations: int) -> None:
    profiles = [find_profile(name) for name in STOCK]
    async with Steering(LOOPBACK, 0) as steering, own_server(steering) as setup:
        report = await endure(setup, profiles, conversations, BAD, at_once=8)
    assert report.failures == []
    assert (report.completed, report.answered) == (conversations, 3 * conversations)
    assert report.lost > 0
