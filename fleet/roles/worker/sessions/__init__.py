"""Sessions of devices from hello to goodbye, their apologies afterwards, and the discovery of their tools."""
