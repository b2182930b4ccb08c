"""Sessions of devices from hello to goodbye, and the discovery of their tools."""
