"""A broker and a Redis from Python wheels, run as child processes."""
