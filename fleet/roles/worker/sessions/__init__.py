"""Sessions of devices from hello to goodbye, and what a worker finds out about each device."""
