"""The installed forms of the audio socket; a conftest or test file imports `socket_form` to run with each of them."""

import pytest

from fleet.roles.edge.transport.datagrams import has_native

NATIVE_FORMS = (False, True) if has_native() else (False,)
"""scripts/test says which these are."""


@pytest.fixture(autouse=True, params=NATIVE_FORMS, ids=lambda native: "native" if native else "plain")
def socket_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with each form."""
    monkeypatch.setenv("FLEET_UDP_NATIVE", str(request.param))
