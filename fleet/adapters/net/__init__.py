"""Networks: MQTT, HTTP servers, TLS, STUN, and the limits of the process."""
