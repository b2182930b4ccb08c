"""Builds each role from the settings. Each role has its own module, so that a process imports only its own role."""
