"""MQTT and the encrypted audio channel (contract 2 to 4)."""
