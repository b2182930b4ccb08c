"""Datagrams: the socket, whose they are, whether they are believed, and the timers that send."""
