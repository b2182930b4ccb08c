"""Activation: a device's proof of its serial number (contract 1.4)."""

import hashlib
import hmac

from pydantic import BaseModel, ConfigDict, ValidationError

LARGEST_BODY = 4096


class ActivationProof(BaseModel):
    """The challenge, signed with the key burnt into the device; chips that cannot sign leave `hmac` empty."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    serial_number: str
    challenge: str
    hmac: str = ""


class _Wrapped(BaseModel):
    Payload: ActivationProof


def parse_proof(body: bytes) -> ActivationProof | None:
    """Return the proof in a body, flat as firmware sends it or wrapped as py-xiaozhi does; None without one."""
    for shape in (ActivationProof, _Wrapped):
        try:
            found = shape.model_validate_json(body)
        except ValidationError:
            continue
        return found.Payload if isinstance(found, _Wrapped) else found
    return None


def verify(proof: ActivationProof, key: bytes) -> bool:
    """Whether the proof was made with a key; compares in constant time.

    Firmware signs with the key itself, py-xiaozhi with the text of its hexadecimal digits.
    """
    given = proof.hmac.encode(errors="replace")
    challenge = proof.challenge.encode(errors="replace")
    fits = [
        hmac.compare_digest(hmac.new(one, challenge, hashlib.sha256).hexdigest().encode(), given)
        for one in (key, key.hex().encode())
    ]
    return any(fits)


def version_of(header: str) -> int:
    """Return the activation version of a request: 2 for `2` and `2.1.1`, else 1."""
    return 2 if header.strip().partition(".")[0] == "2" else 1
