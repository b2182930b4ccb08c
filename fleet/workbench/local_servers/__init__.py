"""Servers on this machine alone, for demos and checks."""
