"""Commands with which operators manage a running system."""
