"""What time does to activations; tests/integration/api/test_activation.py has the rest."""

import secrets
from itertools import chain, cycle

import pytest

from fleet.adapters.redis.access.activations import PENDING_SECONDS, Activations
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Overloaded
from tests.support.virtual_time import elapse

ONE, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


async def test_the_operator_sees_every_code_that_a_device_shows(store: Store) -> None:
    activations = Activations(store)
    assert await activations.codes() == []
    shown = {(mac, (await activations.begin(mac, client, "", with_code=True)).code) for mac, client in CLIENTS}
    assert len(shown) == len(CLIENTS) and all(len(code) == 6 and code.isdigit() for _, code in shown)
    await activations.begin("02:00:00:00:00:03", "client", "serial", with_code=False)
    assert set(await activations.codes()) == shown


CLIENTS = [(ONE, "client 1"), (ONE, "client 2"), (OTHER, "client 1")]


async def test_a_code_is_claimed_once_and_its_challenge_stays(store: Store) -> None:
    activations = Activations(store)
    begun = await activations.begin(ONE, "client 1", "serial", with_code=True)
    assert await activations.claim("abcdef") is None
    assert await activations.claim(begun.code) == (ONE, "client 1", "serial")
    assert await activations.claim(begun.code) is None and await activations.codes() == []
    known = await activations.read(ONE, "client 1")
    assert known is not None and (known.code, known.challenge) == ("", begun.challenge)


async def test_an_activation_lasts_as_long_as_its_device_asks(store: Store) -> None:
    activations = Activations(store)
    begun = await activations.begin(ONE, "client 1", "", with_code=True)
    for _ in range(3):
        await elapse(PENDING_SECONDS * 0.9)
        assert await activations.begin(ONE, "client 1", "", with_code=True) == begun
    await elapse(PENDING_SECONDS * 1.1)
    assert await activations.read(ONE, "client 1") is None and await activations.claim(begun.code) is None
    assert (await activations.begin(ONE, "client 1", "", with_code=True)).challenge != begun.challenge


async def test_no_code_is_shown_by_two_devices(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = chain([7, 7, 8], cycle([7]))
    monkeypatch.setattr(secrets, "randbelow", lambda below: next(drawn))
    activations = Activations(store)
    codes = [(await activations.begin(mac, "client 1", "", with_code=True)).code for mac in (ONE, OTHER)]
    assert codes == ["000007", "000008"]
    with pytest.raises(Overloaded):
        await activations.begin(ONE, "client 2", "", with_code=True)
