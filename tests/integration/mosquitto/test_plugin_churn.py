"""Presence ends right whatever devices do. The long run is slow, the short one is the same with fewer connects."""

import asyncio

import pytest

from tests.support.churn import Churn
from tests.support.mqtt_clients import Clients


@pytest.mark.parametrize(
    ("connects", "seed"), [(600, 1), (600, 2), pytest.param(10_000, 3, marks=pytest.mark.slow, id="10000 connects")]
)
async def test_presence_ends_right_for_every_device(own_clients: Clients, connects: int, seed: int) -> None:
    churn = Churn(own_clients, connects, seed)
    async with asyncio.timeout(300):
        await churn.run()
    told = [one for messages in churn.ledger.told.values() for one in messages]
    assert connects * 0.85 < sum(one.online for one in told) <= connects
    assert sum(not one.online for one in told) < sum(one.online for one in told), "takeovers are no offline"
