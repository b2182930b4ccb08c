"""What commands print of decisions that control carried out."""

import typer

from fleet.adapters.redis.access.claims import Claim
from fleet.wire.control.devices import DecisionOutcome, DeviceClaim


def print_outcome(outcome: DecisionOutcome, state: str, unchanged: str = "") -> None:
    """Print what a decision did.

    Args:
        outcome: Of control.
        state: The state of the device now, such as `is bound`.
        unchanged: A word behind it if the device was so before.
    """
    words = f"{outcome.mac} {state}{'' if outcome.changed else unchanged}"
    typer.echo(f"{words}; {outcome.note}" if outcome.note else words)


def to_claim(claim: DeviceClaim) -> Claim:
    """Return a claim as the tables of commands have it."""
    first, last = int(claim.first.timestamp()), int(claim.last.timestamp())
    return Claim(claim.mac, claim.client, first, last, claim.count, claim.address)
