"""Commands for operators of a running system."""
