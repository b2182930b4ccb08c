"""Datagrams: the socket, the routing to sessions, the checks of packets, and the timers."""
