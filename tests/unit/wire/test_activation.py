import hashlib
import hmac

import pytest

from fleet.wire.activation import ActivationProof, parse_proof, verify, version_of

KEY = bytes(range(32))
SIGNED = hmac.new(KEY, b"abc", hashlib.sha256).hexdigest()
FLAT = b'{"algorithm":"hmac-sha256","serial_number":"S","challenge":"abc","hmac":"%s"}' % SIGNED.encode()


def test_flat_and_wrapped_proofs_are_the_same() -> None:
    assert (
        parse_proof(FLAT)
        == parse_proof(b'{"Payload":%s}' % FLAT)
        == ActivationProof(serial_number="S", challenge="abc", hmac=SIGNED)
    )


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"\xff", b'{"Payload":{}}', b'{"serial_number":1,"challenge":"x"}']
)
def test_what_is_no_proof_is_none(body: bytes) -> None:
    assert parse_proof(body) is None


@pytest.mark.parametrize("given", ["", SIGNED.upper(), SIGNED[:-1], "é" * 64, "0" * 64, "\ud800"])
def test_only_the_right_signature_counts(given: str) -> None:
    proof = ActivationProof(serial_number="S", challenge="abc", hmac=SIGNED)
    assert verify(proof, KEY)
    assert not verify(proof.model_copy(update={"hmac": given}), KEY)
    assert not verify(proof, bytes(32))


@pytest.mark.parametrize(("header", "version"), [("", 1), ("1", 1), ("2", 2), ("2.1.1", 2), ("two", 1), ("21", 1)])
def test_the_versions_first_number_counts(header: str, version: int) -> None:
    assert version_of(header) == version
