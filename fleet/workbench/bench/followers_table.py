"""Figures of `scripts/bench followers`, for people."""

from rich.console import Console

from fleet.workbench.bench.followers import FollowersResult

P99_MS, CORES = 500.0, 1.0
"""What a client may wait for 99 of 100 events, and what control may use of the machine."""


def show_followers(console: Console, result: FollowersResult) -> None:
    """Print what was measured."""
    lost = result.expected - result.received
    console.print(
        f"{result.followers} clients, {result.written} events, {result.received} of {result.expected} deliveries"
    )
    console.print(f"from the event to the client: p50 {result.ms.p50:.0f} ms, p99 {result.ms.p99:.0f} ms")
    console.print(f"control: {result.cores:.2f} cores, {result.deliver_us:.0f} us a delivery")
    good = lost == 0 and result.ms.p99 <= P99_MS and result.cores <= CORES
    console.print(f"{'met' if good else 'missed'}: nothing lost, p99 {P99_MS:g} ms, {CORES:g} core")
