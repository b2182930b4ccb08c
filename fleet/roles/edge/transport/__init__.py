"""Datagrams: the socket, packets that come before their session, the checks of packets, and the timers."""
