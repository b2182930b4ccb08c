import hashlib
import hmac

from fleet.workbench.sim.bootstrap.activation import demanded, proof
from fleet.workbench.sim.profiles.identity import Identity
from fleet.workbench.sim.profiles.profile import PROFILES

PLAIN = Identity.of("02:00:00:00:00:01")
BURNT = Identity(PLAIN.mac, PLAIN.client, serial="SN1", key=bytes(range(32)))


def test_activation_is_demanded_by_a_code_or_a_challenge() -> None:
    assert demanded({}) is None
    assert demanded({"activation": {"message": "m"}}) is None
    assert demanded({"activation": {"code": "123456"}}) == ""
    assert demanded({"activation": {"code": "123456", "challenge": "c"}}) == "c"


def test_without_a_serial_number_nothing_is_proved() -> None:
    assert proof(PLAIN, PROFILES["P1"], "c") == {}


def test_the_challenge_is_signed_with_the_burnt_in_key() -> None:
    signed = hmac.new(BURNT.key, b"c", hashlib.sha256).hexdigest()
    flat = {"algorithm": "hmac-sha256", "serial_number": "SN1", "challenge": "c", "hmac": signed}
    assert proof(BURNT, PROFILES["P1"], "c") == flat
    assert proof(BURNT, PROFILES["P8"], "c") == {"Payload": flat}


def test_a_chip_that_cannot_sign_says_so_with_an_empty_signature() -> None:
    assert proof(Identity(PLAIN.mac, PLAIN.client, serial="SN1"), PROFILES["P1"], "c")["hmac"] == ""
