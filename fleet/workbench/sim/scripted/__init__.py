"""The simulated device without its application: a test decides what it sends, byte for byte, and sees all it gets.

Bootstrap, socket, cipher, encoder, microphone and tool server are those of the simulated device. Two parts are its own:
the MQTT connection (see `mqtt_connection`), and the behaviour, which here is the test's.
"""
