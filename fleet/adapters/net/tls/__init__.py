"""TLS: a server's certificate, and a listener that only finished handshakes pass."""
