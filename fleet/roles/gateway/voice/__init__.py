"""Voice over a WebSocket: a client that speaks xiaozhi's WebSocket protocol is a device on MQTT and UDP."""
