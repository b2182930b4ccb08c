"""HTTP servers: plain or with TLS, with bounds, and the port for metrics and health."""
