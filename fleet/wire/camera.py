"""Upload tokens for a device's camera: short-lived, for one device, not stored (contract 6.1)."""

import re

from fleet.wire.identity import CredentialKeys, Username

LIFE_SECONDS = 600
"""Seconds from issue to the begin of the upload; a device gets a new token before each photo."""

_PURPOSE = "camera"
_TERMS = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,10}))?")
"""The token's expiry, and the generation of its device."""


def issue(keys: CredentialKeys, mac: str, now: float, generation: int | None = None) -> str:
    """Return a token.

    Args:
        keys: The first one signs.
        mac: Canonical.
        now: In seconds since 1970.
        generation: Of the password with which the device is connected: the token is valid as long as the password.
            None if unknown.
    """
    terms = f"{int(now) + LIFE_SECONDS}" + ("" if generation is None else f"-{generation}")
    key_id, signature = keys.sign(_PURPOSE, f"{mac}|{terms}")
    return f"{terms}.{key_id}.{signature}"


def is_valid(keys: CredentialKeys, token: str, mac: str, now: float) -> bool:
    """Whether a token belongs to this device and is valid; compares in constant time."""
    terms, _, rest = token.partition(".")
    key_id, _, signature = rest.partition(".")
    found = _TERMS.fullmatch(terms)
    if found is None or not signature.isascii() or not keys.check(key_id, _PURPOSE, f"{mac}|{terms}", signature):
        return False
    if not now < int(found[1]) <= now + LIFE_SECONDS + 1:
        return False
    if found[2] is None:
        return mac not in keys.revoked
    return keys.admit(mac, Username("device", key_id, generation=int(found[2])))
