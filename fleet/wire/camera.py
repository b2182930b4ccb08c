"""Tokens with which a device's camera may upload: short-lived, for one device, and kept nowhere (contract 6.1)."""

from fleet.wire.identity import Keys

LIFE_SECONDS = 600
"""From being issued to the upload's begin; a device is given a fresh one before each photo."""

_PURPOSE = "camera"


def issue(keys: Keys, mac: str, now: float) -> str:
    """Return a token for a canonical MAC; `now` in seconds since 1970."""
    expires = int(now) + LIFE_SECONDS
    key_id, signature = keys.sign(_PURPOSE, f"{mac}|{expires}")
    return f"{expires}.{key_id}.{signature}"


def is_valid(keys: Keys, token: str, mac: str, now: float) -> bool:
    """Whether a token is this device's and still good; compares in constant time."""
    expires, _, rest = token.partition(".")
    key_id, _, signature = rest.partition(".")
    if not (expires.isascii() and expires.isdigit() and len(expires) <= 12 and signature.isascii()):
        return False
    genuine = keys.check(key_id, _PURPOSE, f"{mac}|{expires}", signature)
    return genuine and now < int(expires) <= now + LIFE_SECONDS + 1 and mac not in keys.revoked
