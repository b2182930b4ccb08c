"""The way to the broker: MQTT for everybody who reads or publishes."""
