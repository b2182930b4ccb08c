"""TLS: a server's certificate, and an acceptor with bounded handshakes."""
