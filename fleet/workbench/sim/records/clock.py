"""The clock of everything that a check measures."""

import time

now = time.monotonic
"""Seconds. The loop's own clock stands still while callbacks run and counts whole milliseconds: an answer that came
within the one in which the question was sent would not be later than it."""
