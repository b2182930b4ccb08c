"""TLS: the certificate that the settings name, and a listener that only finished handshakes pass."""
