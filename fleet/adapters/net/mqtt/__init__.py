"""MQTT: sessions, publishing, and the broker that the settings name."""
