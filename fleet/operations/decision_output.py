"""What commands print of decisions about devices."""

from fleet.adapters.redis.access.claims import Claim
from fleet.operations.json_output import print_result
from fleet.wire.control.devices import DecisionOutcome, DeviceClaim


def print_outcome(outcome: DecisionOutcome, state: str, *, as_json: bool) -> None:
    """Print what a decision did.

    Args:
        outcome: Of control, or of the command itself with `--direct`.
        state: The state of the device now, such as `is bound`.
        as_json: The option of the command.
    """
    text = "; ".join(filter(None, (f"{outcome.mac} {state}", outcome.note)))
    print_result("devices", [outcome], text, as_json=as_json)


def to_claim(claim: DeviceClaim) -> Claim:
    """Return a claim as the tables of commands have it."""
    first, last = int(claim.first.timestamp()), int(claim.last.timestamp())
    return Claim(claim.mac, claim.client, first, last, claim.count, claim.address)
