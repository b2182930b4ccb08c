"""Why one device is silent."""
