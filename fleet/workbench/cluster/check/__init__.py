"""Checks that a rolling restart loses nothing: users talk during the restart, and a judge checks the results."""
