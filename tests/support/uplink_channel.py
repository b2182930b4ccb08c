"""A session's channel for tests of what a device sends."""

from fleet.roles.edge.transport.datagrams import Address, PlainChannel


class _Nowhere:
    def send(self, datagram: bytes, address: Address, /) -> None:
        raise AssertionError("nothing is sent here")


def uplink_channel(key: bytes, ssrc: int) -> PlainChannel:
    """Return a channel that only opens packets."""
    return PlainChannel(key, ssrc, 60, _Nowhere())
