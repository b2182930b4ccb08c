"""The codec of MQTT 3.1 and 3.1.1, for both ends of a connection: framing, packets, and what a client reads."""
