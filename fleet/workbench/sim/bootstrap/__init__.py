"""Bootstrap and activation: the first requests of a device (contract 1)."""
