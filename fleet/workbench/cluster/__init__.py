"""Runs all roles as separate processes on this machine, and checks that a rolling restart loses nothing."""
