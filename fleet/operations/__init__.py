"""What an operator does to a running system: devices, keys."""
