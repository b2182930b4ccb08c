"""Who is served, as the operator's policy has it."""

from typing import Literal

Policy = Literal["open", "code", "closed"]
Verdict = Literal["admitted", "asked", "refused"]
"""`asked`: it has to be activated first."""


def judge(policy: Policy, *, bound: bool, known: str, client: str, provable: bool) -> Verdict:
    """Decide about a device that asks bootstrap.

    A MAC is no secret, so a bound device is also told by the Client-Id that it made at its first start. Where another
    one comes with its MAC, or itself after its memory was erased, it has to be activated again.

    Args:
        policy: The operator's.
        bound: Whether the MAC was bound.
        known: The Client-Id with which it was; empty until one was seen.
        client: The Client-Id that asks.
        provable: Whether it can prove itself with a burnt-in key that the operator knows.
    """
    if policy == "open" or (bound and known in ("", client)):
        return "admitted"
    return "asked" if policy == "code" or provable else "refused"
