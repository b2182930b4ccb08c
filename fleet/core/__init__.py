"""Decisions without IO: they take events and the time, and return what to do."""
