"""WebSocket clients of the gateway that are devices of the registrar dialect."""
