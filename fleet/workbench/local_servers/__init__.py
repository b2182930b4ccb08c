"""Starts servers that only this machine can reach, for demos and checks."""
