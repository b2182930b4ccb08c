"""Voice conversations from a browser."""

from fleet.wire.control.shapes import Shape


class TalkTicket(Shape):
    """What a page needs to talk to an agent through the gateway.

    `device` is the device that the page is. The page opens a WebSocket within `seconds`, at `url`, or without one at
    `path` on its own host and on `port` (`tls_port` for wss; null if the gateway has no certificate), and offers the
    subprotocols `fleet.gateway` and `fleet.ticket.` with the ticket behind it.
    """

    device: str
    ticket: str | None
    seconds: int
    url: str | None = None
    path: str
    port: int
    tls_port: int | None = None
